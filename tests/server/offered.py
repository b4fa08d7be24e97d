"""Programs behind an application on the stand-in model, asked without a socket."""

from __future__ import annotations

import asyncio
import json
import textwrap
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from lmc.server.app import make_app
from lmc.server.program_files import load_programs
from lmc.server.settings import ServerSettings
from lmc.server.state import ServerState
from tests.runtime.programs import dry_session

#: A program of every kind of type; nothing in it needs the model but `label` and `story`.
KINDS = '''
    type Wand:
        """A wand and what it is made of."""
        wood: str(max_len=16)
        core: "feather" | "hair" = "hair"
        length: float = 10.5
    type Search:
        query: str
    type Finish:
        answer: str
        steps: int = 0
    type Action = Search | Finish
    type All:
        wand: Wand
        action: Action
        grade: "A" | "B" | "C"
        level: 1..5
        whole: int
        right: bool
        tags: list[str]
        note: str | None
        counts: dict[str, int]
        code: str

    def everything(wand: Wand, action: Action, grade: "A" | "B" | "C" = "A", level: 1..5 = 3, whole: int = 0, right: bool = True,
                   tags: list[str](max_items=3) = ["a"], note: str | None = None, counts: dict[str, int] = {},
                   code: str(regex=r"[A-Z][0-9]{2}") = "A10") -> All:
        """
        All kinds of values come back.

        None of them is changed.
        """
        return All(wand=wand, action=action, grade=grade, level=level, whole=whole, right=right, tags=tags, note=note, counts=counts,
                   code=code)

    def label(text: str) -> "good" | "bad":
        raw: "Text: ${text}\\nLabel: ${found := select(["good", "bad"])}"
        match found:
            case "good":
                return "good"
            case _:
                return "bad"

    def story(about: str) -> str:
        print("about", about)
        user: "Tell a story about ${about}."
        assistant: text = gen(max_tokens=40, ignore_eos=True)
        return text

    def nothing():
        print("done")

    def conversation(text: str) -> context:
        user: "${text}"
        return here
'''


def written(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """The files with their texts, written to the folder; the paths of those that are programs of their own."""
    paths = []
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        paths.append(path)
    return [path for path in paths if path.parent == folder and path.suffix == ".lmp"]


def offering(folder: Path, files: Mapping[str, str], use: Callable[[httpx.AsyncClient, ServerState], Awaitable[Any]], *,
             functions: Mapping[str, Any] | None = None, make_session: Callable[[], Any] = dry_session, limit: float = 60,
             **settings: Any) -> Any:
    """What `use` gives, with a client of a server that has the programs; at its end the engine holds nothing."""

    async def run() -> Any:
        session = make_session()
        programs = load_programs(written(folder, files), functions or {})
        state = ServerState(ServerSettings("default", **settings), session, programs=programs)
        transport = httpx.ASGITransport(make_app(state))
        try:
            async with asyncio.timeout(limit), httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await use(client, state)
        finally:
            await state.close()
            await asyncio.to_thread(session.wait_until_idle)
            assert state.gate.open == 0
            session.close()

    return asyncio.run(run())


def asked(folder: Path, text: str, function: str, body: Any = None, *, query: Mapping[str, Any] | None = None,
          headers: Mapping[str, str] | None = None, **options: Any) -> httpx.Response:
    """The answer of one function of the program `p.lmp`.  `body` is JSON, or bytes as they are."""
    content = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()

    async def use(client: httpx.AsyncClient, state: ServerState) -> httpx.Response:
        return await client.post(f"/programs/p/{function}", params=query, content=content,
                                 headers={"content-type": "application/json", **(headers or {})})

    return offering(folder, {"p.lmp": text}, use, **options)


def events_of(text: str) -> list[tuple[str, Any]]:
    """The events of a stream: name and data."""
    found = []
    for block in text.split("\n\n"):
        if block and not block.startswith(":"):
            kind, data = block.split("\n")
            found.append((kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found
