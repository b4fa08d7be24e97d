"""The compiler, from top to bottom: parse -> check -> lower -> passes -> emit.

    compiled = compile_file("examples/judge.lmp")
    compiled.module       # IR after the passes
    compiled.program      # what the machine runs

Read this file first, and then the folder that each line of `compile_file` names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lmc.backend.emit import emit
from lmc.backend.program import Program
from lmc.diagnostics import CompileError, Diagnostic
from lmc.ir.core import Module
from lmc.ir.verifier import verify
from lmc.levels import DEFAULT_LEVEL
from lmc.parser.check import Checked, check
from lmc.parser.lower import lower
from lmc.passes import Observe, passes_of, run_passes
from lmc.passes.reorder import moved_lines


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program in all its forms.  `module` is the IR after the passes; `moved`: what was moved in prompts, where that was asked for."""

    checked: Checked
    module: Module
    program: Program
    moved: tuple[Diagnostic, ...] = ()

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What the checker found suspicious but not wrong."""
        return tuple(d for d in self.checked.diagnostics if d not in self.checked.errors)


def compile_file(path: str, *, level: int = DEFAULT_LEVEL, target: str = "local", roots: tuple[str, ...] | None = None,
                 passes: tuple[str, ...] | None = None, reordered: bool = False, observe: Observe | None = None,
                 read: Callable[[str], str] | None = None) -> Compiled:
    """Compile the program whose root file is `path`.

    level, target: that of `-O`; whose pipeline (`local` or `api`)
    passes: run these in place of both
    reordered: lines of a prompt that do not vary may be moved to its front
    roots: folders that imports may reach beside the root file's own
    observe: called after each pass, and after lowering as `"lower"`
    read: gives the text of a file in place of the disk
    Raises `CompileError` with all diagnostics, located.
    """
    checked = check_file(path, roots=roots, read=read)
    if checked.errors:
        raise CompileError(checked.diagnostics, checked.sources)
    try:
        module = lower_program(checked)
        if observe is not None:
            observe("lower", module, module)
        moved: list[Diagnostic] = []

        def note(name: str, before: Module, after: Module) -> None:
            moved.extend(moved_lines(before) if name == "reorder" else ())
            if observe is not None:
                observe(name, before, after)

        module = run_passes(module, passes_of(level, target, reordered=reordered) if passes is None else passes, note)
        program = emit(module)
    except RecursionError:
        raise _too_deep(path, checked) from None
    return Compiled(checked, module, program, tuple(moved))


def check_file(path: str, *, roots: tuple[str, ...] | None = None, read: Callable[[str], str] | None = None) -> Checked:
    """Parse and check the root file and all that it imports.  Mistakes are in the result's diagnostics, none is raised."""
    return check(path, roots=roots, read=read)


def lower_program(checked: Checked) -> Module:
    """The IR before any pass, verified."""
    module = lower(checked)
    verify(module)
    return module


def _too_deep(path: str, checked: Checked) -> CompileError:
    message = f"an expression or block of `{path}` is nested too deeply to compile"
    diagnostic = Diagnostic("E0015", message, None, help="bind inner parts to names, or move them into a `def`")
    return CompileError(diagnostic, checked.sources)
