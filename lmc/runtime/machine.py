"""The machine: runs the functions of a Program on a session, as dataflow, in one event loop.

    machine = Machine(program, session, externs)
    run = machine.start(RunOptions(seed=1), sinks)
    value = await run.call("judge", ("…", ("clarity",)))
    run.report                                                    # Report(calls=4, generated=…)

    judge(essay)
      r1 = context.append …           inline
      r4 = lm.fork(r3, r6) {…} ─────► one task per branch, each a request in the engine
      r8 = lm.gen(r7)          ─────► waits for r7
      control.return(r9)

How an instruction does its work is in the `execute_*.py` files, put together in `opcodes.py`; when it starts is in
`block_run.py`.
"""

from __future__ import annotations

from typing import Any

from lmc.backend.program import FunctionCode, Program
from lmc.diagnostics import RunError
from lmc.runtime.answers import Answers
from lmc.runtime.binding import Bound, bind
from lmc.runtime.execute_control import run_function
from lmc.runtime.frames import Frame
from lmc.runtime.host import Externs
from lmc.runtime.instance import Instance, RunOptions, Sinks
from lmc.runtime.opcodes import OPCODES
from lmc.runtime.report import Report


class Machine:
    """A program bound to a model and to the host's functions; runs any number of instances at a time.

    Raises `LmcError` where the model cannot do what the program asks.
    """

    __slots__ = ("bound",)

    def __init__(self, program: Program, session: Answers, externs: Externs):
        self.bound: Bound = bind(program, session, externs, OPCODES)

    def start(self, options: RunOptions, sinks: Sinks) -> Run:
        """A new run; nothing happens before its `call`."""
        return Run(Instance(self.bound, options, sinks))


class Run:
    """One run of one function."""

    __slots__ = ("_instance",)

    def __init__(self, instance: Instance):
        self._instance = instance

    @property
    def report(self) -> Report:
        """The numbers so far; of the whole run once `call` has returned or raised."""
        return self._instance.report()

    async def call(self, name: str, args: tuple[Any, ...]) -> Any:
        """The value that the function `name` returns for these arguments (values of the runtime, one for each parameter).

        Raises the first `RunError` in program order.  Cancelling it cancels all its requests.
        """
        instance = self._instance
        code: FunctionCode = instance.bound.program.functions[name]
        assert len(args) == len(code.params), (name, len(args))
        try:
            values = await run_function(Frame(instance, code, [None] * code.registers, "", 0), instance.bound.plans[name], args)
        except BaseException as error:
            instance.leases.end()
            if isinstance(error, RunError):
                error.sources = {**instance.bound.program.sources, **error.sources}
            raise
        finally:
            instance.stop_clock()
        return values[-1] if values else None
