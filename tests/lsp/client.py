"""A real client of `lmc lsp`: pygls' own, over standard input and output, with what the server published.

    async with Session(folder) as editor:
        uri = editor.open("a.lmp", "def f(")
        await editor.published(uri)

The tests are plain functions that run one coroutine; nothing here knows what the server answers.
"""

import asyncio
import sys
from pathlib import Path

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient
from pygls.uris import from_fs_path


class Session:
    """Starts the server, initializes it, and shuts it down; `exit_code` is the process's afterwards."""

    def __init__(self, folder: Path, encodings=None):
        self.folder = folder
        self.encodings = encodings
        self.client = LanguageClient("tests", "1")
        self.arrived: dict[str, asyncio.Queue] = {}
        self.log: list[str] = []
        self.versions: dict[str, int] = {}
        self.exit_code = None

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params):
            self.arrived.setdefault(params.uri, asyncio.Queue()).put_nowait(list(params.diagnostics))

        @self.client.feature(lsp.WINDOW_LOG_MESSAGE)
        def log(params):
            self.log.append(params.message)

    async def __aenter__(self):
        await self.client.start_io(sys.executable, "-c", "from lmc.cli import main; main()", "lsp", "--stdio")
        general = lsp.GeneralClientCapabilities(position_encodings=self.encodings)
        self.answer = await self.client.initialize_async(lsp.InitializeParams(
            capabilities=lsp.ClientCapabilities(general=general),
            workspace_folders=[lsp.WorkspaceFolder(from_fs_path(str(self.folder)), "tests")]))
        self.client.initialized(lsp.InitializedParams())
        return self

    async def __aexit__(self, kind, error, trace):
        if kind is None:
            await asyncio.wait_for(self.client.shutdown_async(None), 10)
            self.client.exit(None)
        else:
            self.client._server.kill()
        self.exit_code = await asyncio.wait_for(self.client._server.wait(), 10)
        await self.client.stop()

    def uri(self, name: str) -> str:
        return from_fs_path(str(self.folder / name))

    def open(self, name: str, text: str) -> str:
        uri = self.uri(name)
        self.versions[uri] = 1
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "lmp", 1, text)))
        return uri

    def change(self, uri: str, text: str) -> None:
        self.versions[uri] += 1
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(
            lsp.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri]),
            [lsp.TextDocumentContentChangeWholeDocument(text)]))

    async def published(self, uri: str):
        """The next diagnostics of the document."""
        return await asyncio.wait_for(self.arrived.setdefault(uri, asyncio.Queue()).get(), 20)

    async def hover(self, uri: str, line: int, character: int):
        return await self.client.text_document_hover_async(
            lsp.HoverParams(lsp.TextDocumentIdentifier(uri), lsp.Position(line, character)))

    async def definition(self, uri: str, line: int, character: int):
        return await self.client.text_document_definition_async(
            lsp.DefinitionParams(lsp.TextDocumentIdentifier(uri), lsp.Position(line, character)))

    async def formatted(self, uri: str):
        found = await self.client.text_document_formatting_async(
            lsp.DocumentFormattingParams(lsp.TextDocumentIdentifier(uri), lsp.FormattingOptions(4, True)))
        return None if found is None else list(found)

    async def completion(self, uri: str, line: int, character: int) -> dict:
        found = await self.client.text_document_completion_async(
            lsp.CompletionParams(lsp.TextDocumentIdentifier(uri), lsp.Position(line, character)))
        return {item.label: item for item in found}


def run(scenario) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))
