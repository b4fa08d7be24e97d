"""LMQL's adapter without LMQL: what its constraints say, what is no match of a regex, and what takes too long."""

import asyncio
import sys
import types
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "peers"


class Words:
    """A tokenizer: a token is a letter."""

    bos_token = "^"

    def decode(self, ids):
        return "".join(map(chr, ids))

    def encode(self, text, add_special_tokens):
        assert not add_special_tokens
        return list(map(ord, text))


@pytest.fixture
def asked(monkeypatch):
    """The stand-in for LMQL; what it is asked for.  It writes the prompt again, and never ends where that begins with `!`."""
    asked = []

    def query(code, input_variables):
        async def run(prompt, **settings):
            asked.append((code, prompt, settings))
            if prompt.startswith("!"):
                await asyncio.Event().wait()
            return types.SimpleNamespace(variables={"TEXT": prompt})

        assert input_variables == ["prompt"]
        return run

    def model(name, **settings):
        asked.append((name, settings))
        words = types.SimpleNamespace(tokenizer_impl=types.SimpleNamespace(tokenizer=Words()))
        return types.SimpleNamespace(get_tokenizer=lambda: words)

    kept = types.ModuleType("lmql.models.lmtp.lmtp_dcinprocess")
    kept.lmtp_model_inprocess_instances = {"an ended model": None}
    served = types.ModuleType("lmql.models.lmtp")
    served.lmtp_dcinprocess = kept
    lmql = types.ModuleType("lmql")
    lmql.query, lmql.model = query, model
    for name, module in (("lmql", lmql), ("lmql.models", types.ModuleType("lmql.models")), ("lmql.models.lmtp", served)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.syspath_prepend(str(FOLDER))
    yield asked
    assert kept.lmtp_model_inprocess_instances == {}
    sys.modules.pop("lmql_peer", None)


def opened():
    from lmql_peer import Lmql, Queries

    engine = Lmql()
    engine.job, engine.tokenizer, engine.late = {"model": "m", "dtype": "float32"}, Words(), False
    engine.queries = Queries(engine.job)
    return engine


def ask(text: str, most: int = 9, **more):
    return {"ids": list(map(ord, text)), "max_tokens": most, **more}


def test_limits_in_its_language(asked):
    engine = opened()
    try:
        answer = asyncio.run(engine.generate(ask("ab[c]", stop=["\n"], regex=r"ab\[c\]", ignore_eos=True, temperature=0.7)))
        assert (answer["text"], answer["finish"], len(answer["ids"])) == ("ab[c]", "stop", 5)
        assert asyncio.run(engine.generate(ask("abcdefghi")))["finish"] == "length"
    finally:
        asyncio.run(engine.close())
    (name, settings), (code, _, drawing), (plain, _, greedy) = asked
    assert name == "local:m" and settings["torch_dtype"] == "float32"
    limits = "len(TOKENS(TEXT)) < 10 and len(TOKENS(TEXT)) > 8"
    assert code == f"""\"{{prompt}}[TEXT]\" where {limits} and STOPS_BEFORE(TEXT, '\\n') and REGEX(TEXT, 'ab\\\\[c\\\\]')"""
    assert plain == '"{prompt}[TEXT]" where len(TOKENS(TEXT)) < 10'
    assert (drawing["decoder"], drawing["temperature"], greedy["decoder"]) == ("sample", 0.7, "argmax")


def test_what_it_cannot_do_is_refused(asked):
    engine = opened()
    try:
        for more, says in (({"schema": "{}"}, "no JSON schema"), ({"top_p": 0.9}, "no top_p"), ({"regex": "(active|any)"}, "does not match the regex: 'a'")):
            with pytest.raises((ValueError, RuntimeError), match=says):
                asyncio.run(engine.generate(ask("a", **more)))
    finally:
        asyncio.run(engine.close())


def test_what_hangs_fails_and_its_model_begins_anew(asked, monkeypatch):
    engine = opened()
    monkeypatch.setattr("lmql_peer.LIMIT", 0.05)
    try:
        with pytest.raises(RuntimeError, match="took more than 0.05 seconds"):
            asyncio.run(engine.generate(ask("!")))
        first = engine.queries
        asyncio.run(engine.reset())
        assert engine.queries is not first and not engine.late
        monkeypatch.setattr("lmql_peer.LIMIT", 60)
        assert asyncio.run(engine.generate(ask("ab")))["text"] == "ab"
    finally:
        asyncio.run(engine.close())
