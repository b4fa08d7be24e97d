"""`lmc lsp` as an editor sees it: a process, driven over stdio by a client library."""

from pathlib import Path

from lsprotocol import types as lsp

from tests.lsp.client import Session, run

LIB = '''type Note:
    """What a judge noted."""
    score: 1..5
    reason: str(max_len=20)

def rate(text: str) -> Note:
    user: "Rate: ${text}. Give JSON with ${fields(Note)}."
    assistant: note = gen(Note)
    return note
'''

MAIN = '''from "lib/notes.lmp" import rate, Note

type Label = "good" | "bad"

def main(text: str) -> Label:
    note = rate(text)
    user: "It has ${note.score}. Is it good or bad?"
    assistant: label = gen(Label, max_tokens=4)
    return label
'''


def project(folder: Path) -> Path:
    (folder / "lib").mkdir()
    (folder / "lib" / "notes.lmp").write_text(LIB)
    (folder / "main.lmp").write_text(MAIN)
    return folder


def at(text: str, mark: str, inside: int = 0) -> tuple[int, int]:
    """Line and character of the first `mark`, for text without wide characters."""
    before = text[: text.index(mark) + inside]
    return before.count("\n"), len(before) - before.rfind("\n") - 1


def span(found: lsp.Range) -> tuple[int, int, int, int]:
    return found.start.line, found.start.character, found.end.line, found.end.character


def test_a_session(tmp_path):
    async def scenario():
        async with Session(project(tmp_path)) as editor:
            assert editor.answer.server_info.name == "lmc"
            assert editor.answer.capabilities.position_encoding == "utf-16"
            wrong = MAIN.replace("${note.score}", "${note.skore}")
            uri = editor.open("main.lmp", wrong)
            (found,) = await editor.published(uri)
            line, column = at(wrong, "skore")
            assert (found.code, found.severity, found.source) == ("E0318", lsp.DiagnosticSeverity.Error, "lmc"), found
            assert span(found.range) == (line, column, line, column + 5)
            assert "score" in found.message
            editor.change(uri, MAIN)
            assert await editor.published(uri) == []

            hover = await editor.hover(uri, *at(MAIN, "gen(Label", 1))
            assert "good|bad" in hover.contents.value and "Automaton: 6 states" in hover.contents.value
            assert span(hover.range) == (7, 23, 7, 26)
            hover = await editor.hover(uri, *at(MAIN, "note.score", 1))
            assert "note: Note" in hover.contents.value

            there = await editor.definition(uri, *at(MAIN, "rate(text)", 1))
            assert (there.uri, span(there.range)) == (editor.uri("lib/notes.lmp"), (5, 4, 5, 8))
            there = await editor.definition(uri, *at(MAIN, "note.score", 6))
            assert (there.uri, span(there.range)) == (editor.uri("lib/notes.lmp"), (2, 4, 2, 9))
            there = await editor.definition(uri, 0, 8)
            assert (there.uri, span(there.range)) == (editor.uri("lib/notes.lmp"), (0, 0, 0, 0))

            symbols = await editor.client.text_document_document_symbol_async(
                lsp.DocumentSymbolParams(lsp.TextDocumentIdentifier(uri)))
            assert [s.name for s in symbols] == ["lib/notes.lmp", "Label", "main"]
            used = await editor.client.text_document_references_async(lsp.ReferenceParams(
                lsp.ReferenceContext(True), lsp.TextDocumentIdentifier(uri), lsp.Position(*at(MAIN, "Label"))))
            assert [span(u.range)[:2] for u in used] == [(2, 5), (4, 23), (7, 27)]
        assert editor.exit_code == 0 and editor.log == []

    run(scenario())


def test_completion(tmp_path):
    async def scenario():
        async with Session(project(tmp_path)) as editor:
            uri = editor.open("main.lmp", MAIN)
            await editor.published(uri)

            async def complete(before: str, typed: str) -> dict:
                text = MAIN.replace(before, typed.replace("|", ""), 1)
                editor.change(uri, text)
                await editor.published(uri)
                head = MAIN[: MAIN.index(before)] + typed[: typed.index("|")]
                return await editor.completion(uri, head.count("\n"), len(head) - head.rfind("\n") - 1)

            assert set(await complete("${note.score}", "${note.|}")) == {"score", "reason"}
            assert set(await complete("${note.score}", "${note.sc|}")) == {"score", "reason"}
            assert set(await complete("${note.score}. Is it good or bad?\"", "${note.|")) == {"score", "reason"}
            found = await complete("max_tokens=4)", "|)")
            assert {"max_tokens=", "stop=", "regex=", "Label", "Note"} <= set(found)
            assert found["stop="].detail == "list[str]"
            found = await complete("text: str", "text: |")
            assert {"str", "int", "Label", "Note", "list"} <= set(found) and "gen" not in found
            found = await complete("return label", "return |")
            assert {"label", "note", "text", "main", "rate", "len"} <= set(found)
            assert found["note"].detail == "Note"
            found = await complete("    return label", "    |")
            assert {"user", "assistant", "for", "return", "label"} <= set(found) and "def" not in found
            assert await complete("Is it good", "Is it| good") == {}
            found = await complete("import rate, Note", "import |")
            assert set(found) == {"rate", "Note"}
            found = await complete('type Label', "|\ntype Label")
            assert {"def", "import", "config"} <= set(found)
        assert editor.exit_code == 0

    run(scenario())


def test_an_importer_sees_what_is_not_saved(tmp_path):
    async def scenario():
        async with Session(project(tmp_path)) as editor:
            main = editor.open("main.lmp", MAIN)
            assert await editor.published(main) == []
            lib = editor.open("lib/notes.lmp", LIB)
            assert await editor.published(lib) == [] and await editor.published(main) == []
            editor.change(lib, LIB.replace("score: 1..5", "points: 1..5"))
            (found,) = await editor.published(main)
            assert found.range.start.line == 6 and "score" in found.message
            # Closing gives the file on the disk back.
            editor.client.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(lib)))
            assert await editor.published(main) == []

    run(scenario())


def test_a_mistake_in_a_file_that_is_not_open(tmp_path):
    async def scenario():
        (project(tmp_path) / "lib" / "notes.lmp").write_text(LIB.replace("${text}", "${texd}"))
        async with Session(tmp_path) as editor:
            main = editor.open("main.lmp", MAIN)
            assert await editor.published(main) == []
            (found,) = await editor.published(editor.uri("lib/notes.lmp"))
            assert found.code == "E0201" and span(found.range) == (6, 19, 6, 23)
            (tmp_path / "lib" / "notes.lmp").write_text(LIB)
            editor.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([]))
            assert await editor.published(editor.uri("lib/notes.lmp")) == []

    run(scenario())


WIDE = '''def f(名前: str) -> str:
    user: "😀😀 ${名前} 漢字 ${oops}"
    assistant: answer = gen()
    return answer
'''


def test_positions_count_utf16_units(tmp_path):
    """Two emoji are two characters, four units, eight bytes."""
    line = WIDE.split("\n")[1]

    async def scenario(encodings, width):
        async with Session(tmp_path, encodings) as editor:
            uri = editor.open("wide.lmp", WIDE)
            found = next(d for d in await editor.published(uri) if d.code == "E0201")
            begin = width(line[: line.index("oops")])
            assert span(found.range) == (1, begin, 1, begin + 4)
            hover = await editor.hover(uri, 1, width(line[: line.index("名前}")]))
            assert "名前: str" in hover.contents.value
            there = await editor.definition(uri, 1, width(line[: line.index("名前}")]))
            assert span(there.range) == (0, 6, 0, 6 + width("名前"))

    run(scenario(None, lambda text: len(text.encode("utf-16-le")) // 2))
    run(scenario([lsp.PositionEncodingKind.Utf8], lambda text: len(text.encode())))


def test_formatting(tmp_path):
    async def scenario():
        async with Session(project(tmp_path)) as editor:
            ugly = 'def f( x:int )->int:\n  return x+1   # 😀'
            uri = editor.open("ugly.lmp", ugly)
            await editor.published(uri)
            (edit,) = await editor.formatted(uri)
            assert span(edit.range) == (0, 0, 1, 19)
            assert edit.new_text.startswith("def f(x: int) -> int:\n    return x + 1")
            editor.change(uri, edit.new_text)
            assert await editor.formatted(uri) == []
            editor.change(uri, "def f(\n")
            assert await editor.formatted(uri) is None

    run(scenario())


def test_broken_files_are_answered_from_the_last_good_analysis(tmp_path):
    async def scenario():
        async with Session(project(tmp_path)) as editor:
            uri = editor.open("main.lmp", MAIN)
            await editor.published(uri)
            broken = MAIN.replace("    note = rate(text)", "    # new\n    x = (\n    note = rate(text)")
            editor.change(uri, broken)
            assert [d.severity for d in await editor.published(uri)] == [lsp.DiagnosticSeverity.Error]
            line, column = at(broken, "note.score")
            hover = await editor.hover(uri, line, column)
            assert "note: Note" in hover.contents.value and hover.range.start.line == line
            there = await editor.definition(uri, line, column)
            assert span(there.range)[:2] == at(broken, "note = rate")

    run(scenario())


def test_no_text_breaks_the_server(tmp_path):
    """Every prefix of a program, and what is no program, with a request at the end of each."""
    texts = [MAIN[:n] for n in range(0, len(MAIN), 23)]
    texts += ["", "\0", "\ufeff", "\t", '"', '"""', "${", "def", "(" * 500, "def f():\n" + "    if a:\n" * 5, "a.", "1.",
              '"${', '"${#', "\r\n\r"]

    async def scenario():
        async with Session(project(tmp_path)) as editor:
            uri = editor.open("main.lmp", "")
            await editor.published(uri)
            for text in texts:
                editor.change(uri, text)
                await editor.published(uri)
                lines = text.split("\n")
                place = len(lines) - 1, len(lines[-1])
                await editor.hover(uri, *place)
                await editor.definition(uri, *place)
                await editor.completion(uri, *place)
            await editor.hover(uri, 1000, 1000)
            await editor.completion(uri, 1000, 1000)
            assert await editor.hover(editor.uri("never_opened.lmp"), 0, 0) is None
        assert editor.log == [] and editor.exit_code == 0

    run(scenario())


def test_exit_without_shutdown_is_1(tmp_path):
    async def scenario():
        editor = Session(tmp_path)
        await editor.__aenter__()
        editor.client.exit(None)
        assert await editor.client._server.wait() == 1

    run(scenario())
