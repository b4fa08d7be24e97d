"""Server-sent events as servers and what stands before them send them."""

import asyncio
import json

import pytest

from lmc.runtime.remote.events import events
from lmc.runtime.remote.faults import Again, Fault

SAID = {"choices": [{"delta": {"content": "näive 😀"}}]}
LINE = b"data: " + json.dumps(SAID, ensure_ascii=False).encode()


def read(*chunks: bytes, content_type: str = "text/event-stream") -> list[dict]:
    async def sent():
        for chunk in chunks:
            yield chunk

    async def main() -> list[dict]:
        return [event async for event in events(content_type, sent())]

    return asyncio.run(main())


@pytest.mark.parametrize("body", [
    LINE + b"\n\ndata: [DONE]\n\n",
    LINE + b"\r\n\r\ndata: [DONE]\r\n\r\n",
    b": keep-alive\n\n" + LINE + b"\n\n: keep-alive\n\ndata: [DONE]\n\n",
    b"id: 1\nevent: message\nretry: 5\n" + LINE + b"\n\ndata:[DONE]\n\n",
    LINE.replace(b"data: ", b"data:") + b"\n\ndata: [DONE]",
    LINE,
    LINE + b"\n\ndata: [DONE]\n\nwhatever follows the end",
])
def test_forms_of_events_whatever_they_are_cut_into(body):
    assert read(body) == [SAID]
    # Byte by byte: lines, numbers and characters are cut in their middle.
    assert read(*(bytes([byte]) for byte in body)) == [SAID]


@pytest.mark.parametrize("body, told", [
    (b'data: {"error": {"message": "overloaded"}}\n\n', "overloaded"),
    (b'error: {"code": 500, "message": "slot lost"}\n\n', "slot lost"),
    (b'event: error\ndata: {"message": "gone"}\n\n', "gone"),
    (b"event: error\ndata: plain words\n\n", "plain words"),
    (b'data: {"error": "no more"}', "no more"),
])
def test_errors_in_a_stream_whatever_they_are_called(body, told):
    with pytest.raises(Fault, match=told) as caught:
        read(LINE + b"\n\n", body)
    assert (caught.value.outcome, caught.value.again, caught.value.broken) == ("error in the stream", Again.BILLED, True)


def test_an_event_behind_one_that_was_no_message_is_no_error():
    assert read(b"event: ping\ndata: {}\n\n" + LINE + b"\n\n") == [{}, SAID]


@pytest.mark.parametrize("body", [b"data: {\n\n", b"data: [1]\n\n", b"data: \xff\n\n", b"data: " + b"[" * 100_000 + b"\n\n"])
def test_what_is_no_answer(body):
    with pytest.raises(Fault, match="what is no answer"):
        read(body)


def test_an_event_without_an_end_is_not_kept_for_ever(monkeypatch):
    monkeypatch.setattr("lmc.runtime.remote.events._MOST", 1000)
    with pytest.raises(Fault, match="more than 1,000 bytes"):
        read(b"data: ", *[b"x" * 100] * 11)
    with pytest.raises(Fault, match="more than 1,000 bytes"):
        read(*[b"x" * 100] * 11, content_type="application/json")


def test_a_whole_body_is_one_event():
    assert read(json.dumps(SAID).encode(), content_type="application/json; charset=utf-8") == [SAID]
