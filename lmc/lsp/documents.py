"""The documents that are open in the editor, what was found in each, and which files get which diagnostics.

    documents.open(uri, text)      # analyses it, and every open document that imports it
    documents.diagnostics()        # uri -> its diagnostics, for each file of an open program

A document's unsaved text is what its importers see.  A file that is open is judged by its own check, so that nothing is shown
twice; a file that is not, by those of its importers.  This file knows no protocol.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from pygls.uris import from_fs_path, to_fs_path

from lmc.diagnostics import Diagnostic, Span
from lmc.lsp.analysis import Analysis, analyse
from lmc.lsp.positions import Lines, translate
from lmc.parser import ast
from lmc.parser.read import read_source


class Document:
    """An open document.  `current` is the analysis of its text, `good` the last one in which every item could be read."""

    __slots__ = ("uri", "path", "text", "lines", "current", "good")

    def __init__(self, uri: str, path: str, text: str, encoding: str):
        self.uri, self.path = uri, path
        self.current: Analysis | None = None
        self.good: Analysis | None = None
        self.edit(text, encoding)

    def edit(self, text: str, encoding: str) -> None:
        self.text = text.removeprefix("\ufeff").replace("\r\n", "\n")
        self.lines = Lines(text, encoding)

    def found(self, analysis: Analysis) -> None:
        self.current = analysis
        if analysis.whole:
            self.good = analysis

    def best(self, line: int) -> tuple[Analysis, int] | None:
        """The analysis that knows most about a line of the text, and the line's number there."""
        if self.current is None:
            return None
        item = self.current.item_at(line, len(self.lines.lines[line - 1]) + 1)
        if self.current.whole or self.good is None or not isinstance(item, ast.BrokenItem):
            return self.current, line
        there = translate(self.lines.lines, self.good.lines, line)
        return (self.good, there) if there is not None else (self.current, line)

    def placed(self, span: Span, analysis: Analysis) -> Span | None:
        """A span of an older analysis of this document, where its line is now."""
        if analysis is self.current:
            return span
        line = translate(analysis.lines, self.lines.lines, span.line)
        return Span(span.file, line, span.column, line + span.end_line - span.line, span.end_column) if line is not None else None


class Documents:
    """All open documents, by the real path of their file.  `folders` are the editor's, which imports may not leave."""

    __slots__ = ("encoding", "folders", "failed", "_open", "_shown")

    def __init__(self, failed: Callable[[str, Exception], None]):
        self.encoding = "utf-16"
        self.folders: tuple[str, ...] = ()
        self.failed = failed
        """Told of a fault of `lmc` itself; the last analysis stays."""
        self._open: dict[str, Document] = {}
        self._shown: set[str] = set()

    def get(self, uri: str) -> Document | None:
        return self._open.get(_real(uri))

    def open(self, uri: str, text: str) -> None:
        path = to_fs_path(uri) or uri
        self._open[_real(uri)] = Document(uri, path, text, self.encoding)
        self.analyse_around(uri)

    def change(self, uri: str, text: str) -> None:
        document = self.get(uri)
        if document is None:
            self.open(uri, text)
            return
        document.edit(text, self.encoding)
        self.analyse_around(uri)

    def close(self, uri: str) -> None:
        self._open.pop(_real(uri), None)
        self.analyse_around(uri)

    def analyse_around(self, uri: str) -> None:
        """Analyse a document and the open ones that read it, or that miss a file which it may be."""
        real = _real(uri)
        for path, document in self._open.items():
            known = document.current
            if path == real or known is None or real in known.paths or _misses_a_file(known.diagnostics):
                self._analyse(document)

    def analyse_all(self) -> None:
        """After something changed on the disk."""
        for document in self._open.values():
            self._analyse(document)

    def analyse_as(self, document: Document, text: str) -> Analysis:
        """The analysis of a document as if it held `text`; nothing is kept."""
        if text == document.text and document.current is not None:
            return document.current
        own = os.path.realpath(document.path)
        return analyse(document.path, self._roots(document),
                       lambda path: text if os.path.realpath(path) == own else self.read(path))

    def read(self, path: str) -> str:
        """The text of a file as the editor has it, else as the disk has it."""
        document = self._open.get(os.path.realpath(path))
        return document.text if document is not None else read_source(path)

    def _analyse(self, document: Document) -> None:
        try:
            document.found(analyse(document.path, self._roots(document), self.read))
        except Exception as error:
            self.failed(document.path, error)

    def _roots(self, document: Document) -> tuple[str, ...] | None:
        """The editor's folder around the document: a program in it may import what is in it."""
        real = os.path.realpath(document.path)
        around = [f for f in self.folders if real.startswith(os.path.realpath(f).rstrip(os.sep) + os.sep)]
        return (max(around, key=len),) if around else None

    # ---------------------------------------------------------- diagnostics

    def diagnostics(self) -> dict[str, list[Diagnostic]]:
        """For each file of an open program, and each that was named the last time, what is wrong with it now."""
        found: dict[str, dict[tuple[object, ...], Diagnostic]] = {uri: {} for uri in self._shown}
        for real, document in self._open.items():
            found.setdefault(document.uri, {})
            for diagnostic in document.current.diagnostics if document.current is not None else ():
                file = real if diagnostic.span is None else os.path.realpath(diagnostic.span.file)
                if file == real or file not in self._open:
                    place = (diagnostic.span.line, diagnostic.span.column) if diagnostic.span is not None else None
                    key = (diagnostic.code, place, diagnostic.message)
                    found.setdefault(self.uri_of(file), {})[key] = diagnostic
        self._shown = {uri for uri, own in found.items() if own}
        return {uri: list(own.values()) for uri, own in found.items()}

    def uri_of(self, path: str) -> str:
        """The editor's own URI where the file is open."""
        document = self._open.get(os.path.realpath(path))
        return document.uri if document is not None else from_fs_path(os.path.realpath(path)) or path

    def lines_of(self, path: str) -> Lines:
        """The lines of a file, for positions in it; those of an empty text where it cannot be read."""
        document = self._open.get(os.path.realpath(path))
        if document is not None:
            return document.lines
        for other in self._open.values():
            text = other.current.checked.sources.get(path) if other.current is not None else None
            if text is not None:
                return Lines(text, self.encoding)
        return Lines("", self.encoding)


def _real(uri: str) -> str:
    return os.path.realpath(to_fs_path(uri) or uri)


def _misses_a_file(diagnostics: Iterable[Diagnostic]) -> bool:
    return any(d.code == "E0205" for d in diagnostics)
