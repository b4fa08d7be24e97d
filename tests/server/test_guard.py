"""What does not come in: wrong keys, other sites' pages, other names, bodies that are too long or no JSON."""

from __future__ import annotations

import json
import socket

import openai
import pytest

from lmc.diagnostics import UsageError
from lmc.server import keys as keys_of_files
from lmc.server.guard import check_host, check_key
from lmc.server.keys import key_of, owner_of, read_keys
from lmc.server.settings import ServerSettings
from starlette.datastructures import Headers

from tests.server.running import HTTP, KEYS, keyed, running

BODY = {"model": "dry", "messages": [{"role": "user", "content": "tea"}], "max_tokens": 2}
CHAT = "/v1/chat/completions"
ROUTES = [("GET", "/v1/models"), ("GET", "/v1/models/dry"), ("POST", CHAT), ("POST", "/v1/completions"), ("GET", "/metrics"),
          ("GET", "/openapi.json"), ("GET", "/no/such/path"), ("DELETE", "/v1/models"), ("POST", "/programs/a/b")]


@pytest.fixture(scope="module")
def served():
    with running() as one:
        yield one


@pytest.fixture(scope="module")
def with_keys():
    with running(**keyed("alice", "bob"), origins=("https://app.example",)) as one:
        yield one


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


@pytest.mark.parametrize("method, path", ROUTES)
def test_no_route_is_open_without_a_key(with_keys, method, path):
    for headers in ({}, bearer("wrong"), {"authorization": "Bearer"}, bearer(KEYS["alice"][:-1]), {"authorization": KEYS["alice"]},
                    {"authorization": f"Basic {KEYS['alice']}"}, {"x-api-key": KEYS["alice"]}):
        answer = HTTP.request(method, with_keys.url + path, headers=headers, json={} if method == "POST" else None)
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer", (path, headers)
        assert answer.json()["error"]["code"] == "invalid_api_key" and KEYS["alice"][:-1] not in answer.text
    answer = HTTP.request(method, with_keys.url + path, headers=bearer(KEYS["bob"]), json={} if method == "POST" else None)
    assert answer.status_code != 401


def test_whether_it_lives_needs_no_key(with_keys):
    assert with_keys.get("/health").json() == {"status": "ok"}


def test_the_client_of_openai_says_its_key(with_keys):
    assert with_keys.client("alice").chat.completions.create(**BODY).choices
    with pytest.raises(openai.AuthenticationError) as caught:
        with_keys.client("mallory").chat.completions.create(**BODY)
    assert caught.value.code == "invalid_api_key"


def test_every_key_is_compared_whatever_was_found(monkeypatch):
    compared = []
    monkeypatch.setattr(keys_of_files.hmac, "compare_digest", lambda a, b: compared.append((a, b)) or a == b)
    ring = keyed("alice", "bob")["keys"]
    for given, owner in ((KEYS["alice"], "alice"), (KEYS["bob"], "bob"), ("mallory", None), ("", None), ("\udc80", None)):
        compared.clear()
        assert owner_of(ring, given) == owner and len(compared) == 2
        assert all(len(a) == len(b) == 32 for a, b in compared), "digests, so that lengths tell nothing"


def test_without_keys_anybody_is_one_client():
    assert check_key(Headers({"authorization": "Bearer whatever"}), ServerSettings("dry")) == ""


@pytest.mark.parametrize("text, expected", [
    ("alice alice-has-this-long-key\n# nobody\n\nbob-has-another-long-key\n", ["alice", "line-4"]),
])
def test_a_file_of_keys(tmp_path, text, expected):
    (tmp_path / "keys").write_text(text)
    found = read_keys(tmp_path / "keys")
    assert [key.name for key in found] == expected
    assert owner_of(found, KEYS["bob"]) == "line-4"


@pytest.mark.parametrize("text, message", [
    ("", "holds no key"), ("alice short", "has 5 characters, expected at least 16"), ("a b c", "line 1 .* has 3 words"),
    ("alice alice-has-this-long-kéy", "no header can carry"), ("a alice-has-this-long-key\na bob-has-another-long-key", "same name twice"),
    ("a alice-has-this-long-key\nb alice-has-this-long-key", "same key twice"),
])
def test_a_wrong_file_of_keys(tmp_path, text, message):
    (tmp_path / "keys").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message) as caught:
        read_keys(tmp_path / "keys")
    assert "long-k" not in str(caught.value), "no key is shown"


def test_a_file_of_keys_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_keys(tmp_path / "keys")


def test_a_key_that_no_header_holds():
    with pytest.raises(UsageError, match="in `NAME` holds characters"):
        key_of("x", "one two three four five", "in `NAME`")


# Names.

@pytest.mark.parametrize("host, status", [
    ("localhost:1", 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("LOCALHOST", 200), ("10.1.2.3:99", 200),
    ("evil.example", 421), ("evil.example:8000", 421), ("127.0.0.1.evil.example", 421), ("localhost.evil.example", 421), ("", 421), ("[::", 421),
])
def test_a_local_server_is_not_reached_by_a_name_that_points_to_it(served, host, status):
    assert served.get("/health", headers={"host": host}).status_code == status


def test_names_that_are_allowed():
    local = ServerSettings("dry", hosts=("box.example",))
    check_host(Headers({"host": "box.example:80"}), local)
    with pytest.raises(Exception, match="not called `other.example`"):
        check_host(Headers({"host": "other.example"}), local)
    # Where other machines ask with keys, a name gives nobody a right.
    check_host(Headers({"host": "any.example"}), ServerSettings("dry", host="0.0.0.0", **keyed("alice")))
    with pytest.raises(Exception, match="not called"):
        check_host(Headers({"host": "any.example"}), ServerSettings("dry", host="0.0.0.0"))


# Pages.

@pytest.mark.parametrize("headers", [
    {"origin": "https://evil.example"}, {"origin": "null"}, {"origin": "http://localhost:1"}, {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"}, {"origin": "https://app.example.evil.example"},
])
def test_pages_of_other_sites_may_not_ask(served, headers):
    before = served.session.stats.requests
    for answer in (served.post(CHAT, BODY, headers=headers), served.get("/v1/models", headers=headers)):
        assert answer.status_code == 403 and "access-control-allow-origin" not in answer.headers
    assert served.session.stats.requests == before


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""])
def test_a_form_is_no_request(served, kind):
    """What a page may send without asking first."""
    answer = HTTP.post(served.url + CHAT, content=json.dumps(BODY), headers={"content-type": kind, "origin": "https://evil.example"})
    assert answer.status_code == 403
    answer = HTTP.post(served.url + CHAT, content=json.dumps(BODY), headers={"content-type": kind})
    assert answer.status_code == 415 and "application/json" in answer.json()["error"]["message"]


def test_its_own_pages_may_ask(served):
    assert served.post(CHAT, BODY, headers={"origin": served.url, "sec-fetch-site": "same-origin"}).status_code == 200


def test_pages_that_are_allowed(with_keys):
    origin = {"origin": "https://app.example"}
    asked = origin | {"access-control-request-method": "POST", "access-control-request-headers": "authorization,x-stainless-os"}
    preflight = HTTP.options(with_keys.url + CHAT, headers=asked)
    assert preflight.status_code == 204 and preflight.headers["access-control-allow-origin"] == origin["origin"]
    assert preflight.headers["access-control-allow-headers"] == "authorization,x-stainless-os"
    answer = with_keys.post(CHAT, BODY, headers=origin | bearer(KEYS["alice"]) | {"sec-fetch-site": "cross-site"})
    assert answer.status_code == 200 and answer.headers["access-control-allow-origin"] == origin["origin"]
    assert "origin" in answer.headers["vary"].lower() and "access-control-allow-credentials" not in answer.headers
    # A page without the key learns that, and nothing more.
    assert with_keys.post(CHAT, BODY, headers=origin).status_code == 401
    refused = HTTP.options(with_keys.url + CHAT, headers=asked | {"origin": "https://evil.example"})
    assert refused.status_code == 403 and "access-control-allow-origin" not in refused.headers


# Bodies.

@pytest.fixture(scope="module")
def narrow():
    with running(max_body_bytes=2000, max_prompt_bytes=500) as one:
        yield one


def test_a_long_body_is_not_read(narrow):
    answer = narrow.post(CHAT, BODY | {"user": "x" * 5000})
    assert answer.status_code == 413 and "2,000 bytes" in answer.json()["error"]["message"]
    assert narrow.post(CHAT, BODY).status_code == 200


def test_a_long_body_that_does_not_say_its_length(narrow):
    def pieces():
        yield b'{"model": "dry", "user": "'
        for _ in range(100):
            yield b"x" * 100
        yield b'"}'

    answer = HTTP.post(narrow.url + CHAT, content=pieces(), headers={"content-type": "application/json"})
    assert answer.status_code == 413


def test_a_long_body_is_refused_before_it_is_sent(narrow):
    """The length is enough: nobody waits for the rest."""
    host, port = narrow.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as link:
        link.sendall(f"POST {CHAT} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: 50000000\r\n\r\n".encode())
        assert link.recv(100).startswith(b"HTTP/1.1 413")


def test_a_long_prompt(narrow):
    for path, body in ((CHAT, {"model": "dry", "messages": [{"role": "user", "content": "é" * 300}]}),
                       ("/v1/completions", {"model": "dry", "prompt": ["x" * 300, "y" * 300]})):
        error = narrow.post(path, body).json()["error"]
        assert error["code"] == "context_length_exceeded" and "600 bytes, this server takes 500" in error["message"]


def test_a_body_that_does_not_come_is_not_waited_for():
    with running(body_seconds=0.05) as served:
        host, port = served.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as link:
            link.sendall(f"POST {CHAT} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{{".encode())
            assert link.recv(100).startswith(b"HTTP/1.1 408")
        assert served.post(CHAT, BODY).status_code == 200
