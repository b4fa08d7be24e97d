"""Nothing in a request makes the server ask anybody else (case L-01): a local sink sees no connection, and no name is looked up."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import pytest

from tests.server.offered import KINDS, offering

TURN = {"model": "default", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 20}


def picture(url: str) -> dict:
    return {**TURN, "messages": [{"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": url}}]}]}


def with_schema(schema: dict) -> dict:
    return {**TURN, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}


def structured(schema: dict) -> dict:
    return {**TURN, "structured_outputs": {"json": schema}}


def places(sink: str, canary: Path) -> list[str]:
    """Addresses that lead inside, in the spellings that fool checks."""
    port = sink.rpartition(":")[2]
    return [f"{sink}/x.json", f"http://localhost:{port}/x", f"http://2130706433:{port}/x", f"http://[::ffff:127.0.0.1]:{port}/x",
            f"http://0.0.0.0:{port}/x", f"http://127.0.0.1.nip.invalid:{port}/x", "http://169.254.169.254/latest/meta-data",
            "http://10.0.0.1/x", "https://example.invalid/redirects-inside", canary.as_uri(), str(canary), f"//127.0.0.1:{port}/x",
            f"ftp://127.0.0.1:{port}/x", "other.json#/a"]


@pytest.fixture
def watched(monkeypatch):
    """What this process connects to or looks up by name."""
    seen: list[object] = []

    def connect(self, address):
        seen.append(address)
        raise OSError("no connection in this test")

    def look_up(host, *rest, **more):
        seen.append(host)
        raise socket.gaierror("no name in this test")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket.socket, "connect_ex", connect)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return seen


def test_no_request_makes_the_server_ask_anybody(tmp_path, watched):
    canary = tmp_path / "canary.json"
    canary.write_text('{"const": "hunter2"}')
    came = []

    async def use(client, state):
        # A socket that is bound here, so that worker processes could reach it.
        sink = await asyncio.start_server(lambda reader, writer: came.append(writer.get_extra_info("peername")), "127.0.0.1", 0)
        address = "http://127.0.0.1:%d" % sink.sockets[0].getsockname()[1]
        wrong = []
        for place in places(address, canary):
            schemas = [{"$ref": place}, {"type": "object", "properties": {"a": {"$ref": place + "#/definitions/a"}}},
                       {"$dynamicRef": place}, {"items": {"anyOf": [{"type": "string"}, {"$ref": place}]}}]
            bodies = [picture(place), *(make(schema) for schema in schemas for make in (with_schema, structured))]
            for body in bodies:
                response = await client.post("/v1/chat/completions", json=body)
                if response.status_code != 400 or not response.json()["error"]["message"]:
                    wrong.append((place, body, response.status_code, response.text))
                assert "hunter2" not in response.text
        # A schema that names where it comes from is no reference.
        named = {"$schema": f"{address}/schema", "$id": f"{address}/own", "$ref": f"{address}/own#/$defs/a", "$defs": {"a": {"const": 1}}}
        fine = await client.post("/v1/chat/completions", json=with_schema(named))
        sink.close()
        await sink.wait_closed()
        return wrong, fine

    wrong, fine = offering(tmp_path / "p", {}, use)
    assert wrong == [] and fine.status_code == 200 and fine.json()["choices"][0]["message"]["content"] == "1"
    assert came == [] and watched == []


def test_the_reference_is_named(tmp_path):
    async def use(client, state):
        schema = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}
        return (await client.post("/v1/chat/completions", json=with_schema(schema))).json()["error"]

    error = offering(tmp_path, {}, use)
    assert error["param"] == "response_format" and error["code"] == "E0605"
    assert "at `properties.a.$ref`: only references inside the document are followed, found \"http://127.0.0.1:9/x.json\"" in error["message"]


def test_a_property_called_ref_is_no_reference(tmp_path):
    async def use(client, state):
        schema = {"type": "object", "properties": {"$ref": {"const": "http://x"}}, "required": ["$ref"]}
        return (await client.post("/v1/chat/completions", json=with_schema(schema))).json()

    answer = offering(tmp_path, {}, use)
    assert json.loads(answer["choices"][0]["message"]["content"]) == {"$ref": "http://x"}, answer


def test_an_argument_that_looks_like_an_address_is_text(tmp_path, watched):
    async def use(client, state):
        return await client.post("/programs/p/story", json={"about": "http://127.0.0.1:1/x and file:///etc/passwd @/etc/passwd"})

    response = offering(tmp_path, {"p.lmp": KINDS}, use)
    assert response.status_code == 200 and response.json()["printed"] == ["about http://127.0.0.1:1/x and file:///etc/passwd @/etc/passwd"]
    assert watched == []
