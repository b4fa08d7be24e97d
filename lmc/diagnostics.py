"""Places in source text, diagnostics, and the errors that carry them.

    error[E0201]: undefined name `revew`
      --> classify.lmp:18:22
       |
    18 |         "Review: ${revew}\\nLabel: "
       |                    ^^^^^ not found in this scope
       = help: a parameter with a similar name exists: `review`

A diagnostic is data; `render` is its one form for people.  This file does not know who finds mistakes or where they are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


@dataclass(frozen=True, slots=True)
class Inlined:
    """A call in whose place the code of `function` stands: its site and its place."""

    function: str
    site: str
    span: Span | None


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of a source file; lines and columns count from 1, in characters; the end is exclusive.

    `calls`: of compiled code that was inlined, the calls that led to it, outermost first.  What it does is told as theirs.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    calls: tuple[Inlined, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def to(self, other: Span) -> Span:
        """The stretch from the start of this span to the end of `other`."""
        return Span(self.file, self.line, self.column, other.end_line, other.end_column)


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake: a code of `codes.py`, what was found, where, and what to do next."""

    code: str
    message: str
    span: Span | None
    label: str = ""
    help: str | None = None
    severity: Severity = Severity.ERROR
    notes: tuple[str, ...] = ()


class LmcError(Exception):
    """An error that is the user's to mend.  `diagnostics` is never empty; `sources` maps files to their text, for rendering."""

    def __init__(self, diagnostics: Iterable[Diagnostic] | Diagnostic, sources: Mapping[str, str] | None = None):
        self.diagnostics = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        assert self.diagnostics, "an LmcError needs a diagnostic"
        self.sources = dict(sources or {})
        super().__init__(self.diagnostics[0].message)

    def __str__(self) -> str:
        return render_all(self.diagnostics, self.sources)


class CompileError(LmcError):
    """The program is wrong; nothing ran."""


class UsageError(LmcError):
    """The command line or the call from Python is wrong; nothing ran."""


class RunError(LmcError):
    """The program stopped while it ran.

    `kind` is one of `KINDS`; `raw` is what the model had written where a typed value was cut.
    """

    KINDS = (
        "fail", "assert", "index", "key", "value", "type", "extern", "input", "truncated", "invalid", "context_length",
        "pool", "budget", "cancelled", "model", "internal", "cassette",
    )

    def __init__(self, diagnostics: Iterable[Diagnostic] | Diagnostic, sources: Mapping[str, str] | None = None, *,
                 kind: str = "fail", raw: str | None = None):
        assert kind in self.KINDS, kind
        super().__init__(diagnostics, sources)
        self.kind = kind
        self.raw = raw


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """In order of place; those without one come last."""
    return sorted(diagnostics, key=lambda d: (d.span is None, d.span or Span("", 0, 0, 0, 0)))


def render_all(diagnostics: Iterable[Diagnostic], sources: Mapping[str, str]) -> str:
    """All diagnostics in order of place, a blank line between two."""
    lines = {file: text.split("\n") for file, text in sources.items()}
    return "\n\n".join(render(d, lines.get(d.span.file) if d.span else None) for d in in_order(diagnostics))


def render(diagnostic: Diagnostic, source: Sequence[str] | None) -> str:
    """The form for people.  `source`: the lines of the file; without them those with the caret are left out."""
    lines = [f"{diagnostic.severity.value}[{diagnostic.code}]: {diagnostic.message}"]
    margin = ""
    if diagnostic.span is not None:
        margin = " " * len(str(diagnostic.span.line))
        lines.append(f"{margin} --> {diagnostic.span}")
        if source is not None:
            lines += _excerpt(diagnostic, source, margin)
    lines += [f"{margin} = note: {note}" for note in diagnostic.notes]
    if diagnostic.help:
        first, *rest = diagnostic.help.split("\n")
        lines.append(f"{margin} = help: {first}")
        lines += [f"{margin}         {line}" for line in rest]
    return "\n".join(lines)


# A longer line is cut around the caret: a one-line 5 MB literal must not be printed whole.
_MAX_LINE = 160


def _excerpt(diagnostic: Diagnostic, source: Sequence[str], margin: str) -> list[str]:
    span = diagnostic.span
    text = source[span.line - 1].rstrip("\r") if span.line <= len(source) else ""
    width = span.end_column - span.column if span.end_line == span.line else len(text) + 1 - span.column
    start = span.column - 1
    if len(text) > _MAX_LINE:
        cut = max(0, start - _MAX_LINE // 2)
        text = ("…" if cut else "") + text[cut : cut + _MAX_LINE] + "…"
        start -= cut - bool(cut)
        width = min(width, len(text) - start)
    # Tabs keep their place under the line, whatever width the terminal gives them.
    pad = "".join("\t" if c == "\t" else " " for c in text[:start])
    caret = "^" * max(1, width)
    return [f"{margin} |", f"{span.line} | {text}", f"{margin} | {pad}{caret} {diagnostic.label}".rstrip()]
