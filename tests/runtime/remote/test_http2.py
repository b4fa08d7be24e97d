"""HTTP/2 on a real server: one connection for all requests, and what is given up is told to the server without hurting the others."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from lmc.diagnostics import RunError, UsageError
from lmc.runtime.remote.openai_interface import OpenAi
from lmc.runtime.remote.reading import Reading
from lmc.runtime.remote.settings import Patience, RemoteSettings, checked
from lmc.runtime.remote.transport import Transport
from tests.runtime.remote.http2_server import Asked, Http2Server, http2_serving

BODY = {"messages": []}


def transport(server: Http2Server, **more) -> Transport:
    return Transport(RemoteSettings("openai", server.url, patience=Patience(deadline=10, attempts=1), ca_file=server.ca_file, **more))


async def ask(transport: Transport, name: str = "", stops: tuple[str, ...] = ()) -> str:
    answer, _ = await transport.ask("/chat/completions", {**BODY, "user": name}, Reading(OpenAi(), stops=stops), lambda tried: None)
    return answer.text


def test_requests_side_by_side_share_one_connection(tmp_path):
    there = 0
    all_there: list[asyncio.Event] = []

    async def reply(asked: Asked) -> AsyncIterator[str]:
        nonlocal there
        all_there[:] = all_there or [asyncio.Event()]
        there += 1
        if there == 20:
            all_there[0].set()
        yield "one "
        # Nobody's answer goes on until everybody has asked: one after the other would end at the deadline.
        await all_there[0].wait()
        yield asked.body["user"]

    async def main(server: Http2Server) -> list[str]:
        asking = transport(server)
        try:
            return await asyncio.gather(*(ask(asking, str(number)) for number in range(20)))
        finally:
            await asking.close()

    with http2_serving(reply, tmp_path) as server:
        assert asyncio.run(main(server)) == [f"one {number}" for number in range(20)]
    assert {asked.version for asked in server.asked} == {"2"}
    assert len({asked.client for asked in server.asked}) == 1


@pytest.mark.parametrize("begun", [True, False])
def test_who_is_cancelled_is_told_to_the_server_and_the_others_go_on(tmp_path, begun):
    async def reply(asked: Asked) -> AsyncIterator[str]:
        if asked.body["user"] == "stays":
            yield "I "
            await given_up.wait()
            yield "stay"
            return
        if begun:
            yield "never "
        waiting.set()
        await asked.gone.wait()
        given_up.set()

    async def main(server: Http2Server) -> str:
        asking = transport(server)
        stays = asyncio.create_task(ask(asking, "stays"))
        goes = asyncio.create_task(ask(asking, "goes"))
        await asyncio.to_thread(waiting.wait)
        goes.cancel()
        with pytest.raises(asyncio.CancelledError):
            await goes
        try:
            return await stays
        finally:
            await asking.close()

    waiting, given_up = threading.Event(), asyncio.Event()
    with http2_serving(reply, tmp_path) as server:
        assert asyncio.run(main(server)) == "I stay"
    assert len({asked.client for asked in server.asked}) == 1


def test_a_connection_outlives_any_number_of_answers_that_are_cut(tmp_path):
    """h2 allows a hundred streams at once; each cut one used to count for ever."""
    async def reply(asked: Asked) -> AsyncIterator[str]:
        yield "value\n"
        await asked.gone.wait()

    async def main(server: Http2Server) -> set[str]:
        asking = transport(server)
        try:
            return {await ask(asking, stops=("\n",)) for _ in range(120)}
        finally:
            await asking.close()

    with http2_serving(reply, tmp_path) as server:
        assert asyncio.run(main(server)) == {"value"}
    assert len(server.asked) == 120 and len({asked.client for asked in server.asked}) == 1
    assert all(asked.gone.is_set() for asked in server.asked)


def test_what_the_server_breaks_off_may_have_been_billed(tmp_path):
    async def reply(asked: Asked) -> AsyncIterator[str]:
        yield "par"
        raise ValueError("the server has a fault")

    tried = []

    async def main(server: Http2Server) -> None:
        asking = transport(server)
        with pytest.raises(RunError, match="may have been billed") as caught:
            await asking.ask("/chat/completions", BODY, Reading(OpenAi()), tried.append)
        assert caught.value.raw == "par"
        await asking.close()

    with http2_serving(reply, tmp_path) as server:
        asyncio.run(main(server))
    assert [(t.outcome, t.billed) for t in tried] == [("dropped", "maybe")]


@pytest.mark.parametrize("pause, connections", [(0.0, 1), (0.3, 2)])
def test_without_http2_a_connection_is_used_again_where_the_server_cannot_be_closing_it(tmp_path, monkeypatch, pause, connections):
    """Servers close what is idle; a request that crosses the close is lost, and may be billed."""
    monkeypatch.setattr("lmc.runtime.remote.transport._KEPT", 0.2)

    async def reply(asked: Asked) -> AsyncIterator[str]:
        yield "x"

    async def main(server: Http2Server) -> None:
        asking = transport(server)
        assert await ask(asking) == "x"
        await asyncio.sleep(pause)
        assert await ask(asking) == "x"
        await asking.close()

    with http2_serving(reply, tmp_path, spoken=("http/1.1",)) as server:
        asyncio.run(main(server))
    assert len({asked.client for asked in server.asked}) == connections
    assert {asked.version for asked in server.asked} == {"1.1"}


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path):
    async def reply(asked: Asked) -> AsyncIterator[str]:
        yield "x"

    async def main(server: Http2Server) -> None:
        asking = Transport(RemoteSettings("openai", server.url, patience=Patience(attempts=1)))
        with pytest.raises(RunError, match="(?i)certificate"):
            await ask(asking)
        await asking.close()

    with http2_serving(reply, tmp_path) as server:
        asyncio.run(main(server))
    assert not server.asked


def test_a_file_of_certificates_that_is_none(tmp_path):
    (tmp_path / "empty.pem").write_text("nothing")
    for name in ("empty.pem", "missing.pem"):
        with pytest.raises(UsageError, match=name):
            checked(RemoteSettings("openai", "https://h", ca_file=str(tmp_path / name)))
