"""How long something computes, for tests that tell linear growth from quadratic.

The garbage collector stands still meanwhile: what it costs hangs on everything that is alive in the process, so late in a large suite
it makes linear work look quadratic.
"""

import gc
import time
from collections.abc import Callable


def processor_seconds(work: Callable[[], object], *, runs: int = 2) -> float:
    """The least processor time, in seconds, of `runs` runs of `work`."""
    gc.collect()
    gc.disable()
    try:
        return min(_seconds(work) for _ in range(runs))
    finally:
        gc.enable()


def _seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
