"""The language server: requests of the protocol in, answers of this package out.

    serve(sys.stdin.buffer, output)      # what `lmc lsp` does

Documents come whole at each change: a program is small, and editors disagree about what ends a line within a change.  Every
request is answered from the last analysis, which the last change made.
"""

from __future__ import annotations

import traceback
from importlib.metadata import version
from typing import BinaryIO

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from lmc.diagnostics import Diagnostic, Severity, Span
from lmc.lsp import completion, navigation
from lmc.lsp.completion import Kind, Proposal
from lmc.lsp.documents import Document, Documents
from lmc.lsp.hover import hover
from lmc.lsp.navigation import Entry, Outline
from lmc.lsp.positions import Lines
from lmc.parser.format import format_source


def serve(source: BinaryIO, output: BinaryIO) -> int:
    """Serve one editor until it says `exit`, and close `output`.

    Gives the exit code that the protocol wants: 0, or 1 where the editor leaves without saying `shutdown` before.
    """
    server = _create_server()
    said: set[str] = set()

    @server.feature(lsp.SHUTDOWN)
    def shutdown(params: None) -> None:
        said.add(lsp.SHUTDOWN)

    server.start_io(source, output)
    return 0 if lsp.SHUTDOWN in said else 1


def _create_server() -> LanguageServer:
    server = LanguageServer("lmc", version("lmc"), text_document_sync_kind=lsp.TextDocumentSyncKind.Full)

    def failed(path: str, error: Exception) -> None:
        trace = "".join(traceback.format_exception(error))
        server.window_log_message(lsp.LogMessageParams(lsp.MessageType.Error, f"lmc is broken on {path}:\n{trace}"))

    documents = Documents(failed)
    _keep_documents(server, documents)
    _answer_about_places(server, documents)
    _answer_about_files(server, documents)
    return server


def _keep_documents(server: LanguageServer, documents: Documents) -> None:
    def publish() -> None:
        for uri, found in documents.diagnostics().items():
            shown = [_diagnostic(d, documents) for d in found]
            server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, shown))

    def folders() -> tuple[str, ...]:
        found = [to_fs_path(folder.uri) for folder in server.workspace.folders.values()] or [server.workspace.root_path]
        return tuple(path for path in found if path)

    @server.feature(lsp.INITIALIZED)
    def initialized(params: lsp.InitializedParams) -> None:
        documents.encoding = server.workspace.position_encoding or documents.encoding
        documents.folders = folders()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders_changed(params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        documents.folders = folders()
        documents.analyse_all()
        publish()

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        documents.open(params.text_document.uri, params.text_document.text)
        publish()

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        documents.change(params.text_document.uri, params.content_changes[-1].text)
        publish()

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        documents.analyse_around(params.text_document.uri)
        publish()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def files_changed(params: lsp.DidChangeWatchedFilesParams) -> None:
        documents.analyse_all()
        publish()

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        documents.close(params.text_document.uri)
        publish()


def _answer_about_places(server: LanguageServer, documents: Documents) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hovered(params: lsp.HoverParams) -> lsp.Hover | None:
        document = documents.get(params.text_document.uri)
        place = document.lines.place(params.position) if document is not None else (1, 1)
        best = document.best(place[0]) if document is not None else None
        found = hover(best[0], best[1], place[1]) if best is not None else None
        if document is None or best is None or found is None:
            return None
        span = document.placed(found[1], best[0])
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, found[0]), document.lines.range(span) if span else None)

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def defined(params: lsp.DefinitionParams) -> lsp.Location | None:
        document = documents.get(params.text_document.uri)
        place = document.lines.place(params.position) if document is not None else (1, 1)
        best = document.best(place[0]) if document is not None else None
        span = navigation.definition(best[0], best[1], place[1]) if best is not None else None
        if document is None or best is None or span is None:
            return None
        there = document.placed(span, best[0]) if span.file == document.path else span
        return _location(there, documents) if there is not None else None

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def referred(params: lsp.ReferenceParams) -> list[lsp.Location] | None:
        document = documents.get(params.text_document.uri)
        if document is None or document.current is None:
            return None
        place = document.lines.place(params.position)
        spans = navigation.references(document.current, *place, declaration=params.context.include_declaration)
        return [_location(span, documents) for span in spans]

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["."]))
    def completed(params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        document = documents.get(params.text_document.uri)
        if document is None:
            return []
        found = completion.complete(document.text, document.lines.offset(params.position),
                                    lambda text: documents.analyse_as(document, text), document.good)
        return [_completion(proposal) for proposal in found]


def _answer_about_files(server: LanguageServer, documents: Documents) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def outlined(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        document = documents.get(params.text_document.uri)
        if document is None or document.current is None or document.current.file is None:
            return []
        return [_symbol(entry, document.lines) for entry in navigation.outline(document.current.file)]

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatted(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        document = documents.get(params.text_document.uri)
        return _format(document) if document is not None else None


def _format(document: Document) -> list[lsp.TextEdit] | None:
    """One edit of the whole; none where nothing changes, and None where the file has syntax errors."""
    written = format_source(document.path, document.text).text
    if written is None:
        return None
    whole = lsp.Range(lsp.Position(0, 0), document.lines.end)
    return [lsp.TextEdit(whole, written)] if written != document.text else []


# ----------------------------------------------------- from ours to the protocol's

_SEVERITIES = {Severity.ERROR: lsp.DiagnosticSeverity.Error, Severity.WARNING: lsp.DiagnosticSeverity.Warning}
_COMPLETIONS = {
    Kind.KEYWORD: lsp.CompletionItemKind.Keyword, Kind.FUNCTION: lsp.CompletionItemKind.Function,
    Kind.VARIABLE: lsp.CompletionItemKind.Variable, Kind.CONSTANT: lsp.CompletionItemKind.Constant,
    Kind.TYPE: lsp.CompletionItemKind.Class, Kind.FIELD: lsp.CompletionItemKind.Field,
    Kind.METHOD: lsp.CompletionItemKind.Method, Kind.OPTION: lsp.CompletionItemKind.Property,
    Kind.MODULE: lsp.CompletionItemKind.Module,
}
_SYMBOLS = {
    Outline.CONSTANT: lsp.SymbolKind.Constant, Outline.TYPE: lsp.SymbolKind.Enum, Outline.RECORD: lsp.SymbolKind.Struct,
    Outline.FIELD: lsp.SymbolKind.Field, Outline.FUNCTION: lsp.SymbolKind.Function, Outline.PART: lsp.SymbolKind.Function,
    Outline.EXTERN: lsp.SymbolKind.Interface, Outline.TEST: lsp.SymbolKind.Event, Outline.CONFIG: lsp.SymbolKind.Object,
    Outline.IMPORT: lsp.SymbolKind.Module,
}


def _diagnostic(diagnostic: Diagnostic, documents: Documents) -> lsp.Diagnostic:
    span = diagnostic.span
    here = documents.lines_of(span.file).range(span) if span is not None else lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
    parts = [diagnostic.message + (f": {diagnostic.label}" if diagnostic.label else ""), *diagnostic.notes]
    if diagnostic.help:
        parts.append(f"help: {diagnostic.help}")
    return lsp.Diagnostic(here, "\n".join(parts), _SEVERITIES[diagnostic.severity], diagnostic.code, source="lmc")


def _location(span: Span, documents: Documents) -> lsp.Location:
    return lsp.Location(documents.uri_of(span.file), documents.lines_of(span.file).range(span))


def _completion(proposal: Proposal) -> lsp.CompletionItem:
    doc = lsp.MarkupContent(lsp.MarkupKind.Markdown, proposal.doc) if proposal.doc else None
    return lsp.CompletionItem(proposal.label, kind=_COMPLETIONS[proposal.kind], detail=proposal.detail or None, documentation=doc,
                              insert_text=proposal.insert)


def _symbol(entry: Entry, lines: Lines) -> lsp.DocumentSymbol:
    children = [_symbol(child, lines) for child in entry.children]
    return lsp.DocumentSymbol(entry.name, _SYMBOLS[entry.kind], lines.range(entry.span), lines.range(entry.name_span),
                              entry.detail or None, children=children or None)
