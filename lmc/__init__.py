"""`lmc`: a compiler and runtime for language-model programs.

    import lmc
    judge = lmc.load("judge.lmp").judge
    judge(essay="…").grade
"""

from lmc.diagnostics import CompileError, Diagnostic, LmcError, RunError, UsageError
from lmc.embed import load

__all__ = ["CompileError", "Diagnostic", "LmcError", "RunError", "UsageError", "load"]
