"""CUDA graphs of decoding steps: one per shape of the inputs, captured at its first use, replayed after.

    graphs = DecodeGraphs(compute)
    logits = graphs.run(inputs)        the first time of a shape: computes, captures; then: copies the inputs, replays

A graph reads and writes the tensors that it was captured with; their room is bounded by forgetting the graph that was used longest ago.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import torch

from lmc.runtime.model.gpu.inputs import StepInputs

# Shapes are powers of two of rows, tiles and slots; a workload meets a few dozen.
_KEPT = 64


class DecodeGraphs:
    """`compute`: StepInputs -> logits; launches kernels and nothing else."""

    __slots__ = ("compute", "_captured")

    def __init__(self, compute: Callable[[StepInputs], torch.Tensor]):
        self.compute = compute
        self._captured: OrderedDict[tuple, tuple[torch.cuda.CUDAGraph, StepInputs, torch.Tensor]] = OrderedDict()

    def run(self, inputs: StepInputs) -> torch.Tensor:
        """The logits of `inputs`; they hold until the next run of a step of this shape."""
        shape = (*(len(tensor) for tensor in inputs.tensors()), len(inputs.plan.partial))
        if shape not in self._captured:
            return self._capture(shape, inputs)
        self._captured.move_to_end(shape)
        graph, own, logits = self._captured[shape]
        for target, source in zip(own.tensors(), inputs.tensors(), strict=True):
            target.copy_(source, non_blocking=True)
        graph.replay()
        return logits

    def _capture(self, shape: tuple, inputs: StepInputs) -> torch.Tensor:
        # Once outside of the graph: kernels are compiled and libraries set up, which cannot be captured.  What it writes to the pool
        # the graph writes again.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.compute(inputs)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            logits = self.compute(inputs)
        graph.replay()
        self._captured[shape] = (graph, inputs, logits)
        if len(self._captured) > _KEPT:
            self._captured.popitem(last=False)
        return logits
