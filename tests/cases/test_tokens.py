"""Real failures of this field with tokens and streams (`cases.jsonl` A-02, A-03, B-01, B-02, B-03), as whole runs of programs.

Models are scripted: they write the tokens that a case is about.
"""

import asyncio

import pytest

from lmc.compiler import compile_file
from lmc.runtime.dry import ScriptedModel
from lmc.runtime.dry_text import DryTokenizer
from lmc.runtime.host import bind_externs
from lmc.runtime.instance import RunOptions, Sinks
from lmc.runtime.machine import Machine
from lmc.runtime.template import dry_template, load_template
from lmc.runtime.tokenizer import load_tokenizer
from tests.runtime.folders import CHATML, byte_level_json, sentencepiece_json, write_folder
from tests.runtime.programs import TOKENS, WatchedSession, program_of, run, scripted_session

CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def vocabulary(*pieces):
    """All bytes, these pieces, and the control tokens of ChatML."""
    return DryTokenizer([p if isinstance(p, bytes) else p.encode() for p in pieces], CONTROL, (CONTROL[0], CONTROL[2]))


def session_that(tokenizer, answer, template=None):
    """A session whose model writes `answer(text of the prompt)`, token ids, after a prompt that it gives an answer for.

    The prompt is found by trying, from the whole text back; a prompt may be answered once its last token is there.
    """
    end = min(tokenizer.end_ids)

    def script(ids):
        for cut in range(len(ids), 0, -1):
            wanted = answer(tokenizer.decode_bytes(ids[:cut]).decode(errors="replace"))
            if wanted is not None:
                written = list(ids[cut:])
                goes_on = written == wanted[:len(written)] and len(written) < len(wanted)
                return {wanted[len(written)] if goes_on else end: 20.0}
        return {end: 20.0}

    return WatchedSession(ScriptedModel(tokenizer.size, script), tokenizer, template or dry_template(tokenizer), slots=1 << 14)


def after(answers):
    """`answer` for `session_that`: by how the prompt's text ends."""
    return lambda text: next((ids for ending, ids in answers.items() if text.endswith(ending)), None)


# ------------------------------------------------------------------------

BEGIN = '''
def plain() -> str:
    raw:
        "hi"
        x = gen(max_tokens=2)
    return x

def turns() -> str:
    user: "hi"
    fork i in range(2):
        assistant: x = gen(max_tokens=2)
        user: "more ${i}"
        assistant: y = gen(max_tokens=2)
    join y as ys
    return ys[0]
'''


@pytest.mark.parametrize("make", [byte_level_json, sentencepiece_json])
@pytest.mark.parametrize("template", [CHATML, "{{ bos_token }}" + CHATML])
@pytest.mark.parametrize("adds", [True, False])
def test_a02_the_begin_token_comes_once_or_never(make, template, adds, tmp_path):
    folder = write_folder(tmp_path, make(add_bos=adds), template=template)
    tokenizer = load_tokenizer(folder)
    begin = tokenizer.control_id("<s>")
    program = program_of(BEGIN, tmp_path)
    for name, count in (("plain", 1), ("turns", 4)):
        has = adds or (name == "turns" and template != CHATML)
        session = session_that(tokenizer, lambda text: None, load_template(folder, tokenizer))
        assert run(program, session, name).error is None
        prompts = [r.prompt for r in session.requests]
        assert len(prompts) == count
        assert all(ids.count(begin) == has and (not has or ids[0] == begin) for ids in prompts), (name, prompts)


SHARED = '''
def plain() -> str:
    raw:
        "user: hi hi hi w hi\\nassistant: "
        x = gen(max_tokens=1, heal=False)
    return x

def turns() -> str:
    user: "hi hi hi w hi"
    assistant: x = gen(max_tokens=1, heal=False)
    return x
'''
SPELLED = ("{{ bos_token }}{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}"
           "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}")


@pytest.mark.parametrize("first, second", [("plain", "turns"), ("turns", "plain")])
def test_a02_raw_and_turns_of_one_text_share_their_cached_prefix(first, second, tmp_path):
    """Of a SentencePiece vocabulary they would not be one text: raw text begins with a space there."""
    folder = write_folder(tmp_path, byte_level_json(add_bos=True), template=SPELLED)
    tokenizer = load_tokenizer(folder)
    session = session_that(tokenizer, lambda text: None, load_template(folder, tokenizer))
    machine = Machine(program_of(SHARED, tmp_path), session, bind_externs(program_of(SHARED, tmp_path), {}))

    async def both():
        reports = []
        for name in (first, second):
            run = machine.start(RunOptions(seed=1), Sinks(print, lambda path, text: None))
            await run.call(name, ())
            reports.append(run.report)
        return reports

    before, after_it = asyncio.run(both())
    session.close()
    one, two = (r.prompt for r in session.requests)
    assert one == two and one.count(tokenizer.control_id("<s>")) == 1 and one[0] == tokenizer.control_id("<s>")
    # The last token of a prompt is always computed.
    assert (before.cached, after_it.cached) == (0, len(two) - 1)


# ------------------------------------------------------------------------

SEAMS = '''
def colour() -> str:
    raw:
        "The sky is "
        v = gen(max_tokens=5)
        "."
        w = gen(max_tokens=1)
    return v

def address() -> str:
    raw:
        "https:"
        v = gen(max_tokens=5)
    return v

def unhealed() -> str:
    raw:
        "The sky is "
        v = gen(max_tokens=5, heal=False)
    return v
'''


def test_a03_the_seam_between_text_and_generation(tmp_path):
    tokens = vocabulary("The sky is", "blue", " blue", "https", "://")
    one = {text: tokens.encode(text)[0] for text in (" blue", "://", "blue")}
    session = session_that(tokens, after({"The sky is": [one[" blue"]], "https": [one["://"]], "The sky is ": [one["blue"]]}))
    program = program_of(SEAMS, tmp_path, level=0)  # each generation a request of its own
    ended = run(program, session, "colour")
    assert ended.value == "blue"
    assert tokens.decode_bytes(session.requests[0].prompt) == b"The sky is" and session.requests[0].heal == b" "
    second = session.requests[1]
    assert tokens.decode_bytes(second.prompt) + second.heal == b"The sky is blue."  # one space
    session = session_that(tokens, after({"https": [one["://"]]}))
    assert run(program, session, "address").value == "//" and session.requests[0].heal == b":"
    session = session_that(tokens, after({"The sky is ": [one["blue"]]}))
    assert run(program, session, "unhealed").value == "blue"
    assert list(session.requests[0].prompt) == tokens.encode("The sky is ") and session.requests[0].heal == b""
    (warning,) = [w for w in compile_file(str(tmp_path / "program.lmp")).warnings if w.code == "W101"]
    lines = SEAMS.lstrip("\n").splitlines()
    assert warning.span.line == len(lines) - 2 and warning.span.end_column <= len(lines[-3]) + 1


# ------------------------------------------------------------------- B-01, B-02

STREAMS = '''
def say(q: str, limit: int = 100) -> str:
    user: "${q}"
    assistant: x = gen(max_tokens=limit, stream=True)
    return x

def twice() -> list[str]:
    user: "five"
    assistant:
        a = gen(max_tokens=3, stream=True)
        b = gen(max_tokens=9, stream=True)
    return [a, b]

def branches() -> list[str]:
    user: "five"
    assistant: a = gen(max_tokens=3)
    fork i in range(2):
        assistant: b = gen(max_tokens=2, stream=True)
        user: "branch ${i}"
        assistant: c = gen(max_tokens=20, stream=True)
    join c as cs
    return cs
'''


def side_by_side(program, session, *calls):
    """Runs of functions on one machine at a time; (value, streamed pieces) of each."""

    async def main():
        machine = Machine(program, session, bind_externs(program, {}))
        pieces = [[] for _ in calls]
        runs = [machine.start(RunOptions(seed=1), Sinks(print, lambda path, text, own=own: own.append(text))) for own in pieces]
        values = await asyncio.gather(*(one.call(name, args) for one, (name, *args) in zip(runs, calls)))
        return list(zip(values, pieces))

    try:
        return asyncio.run(main())
    finally:
        session.close()


def test_b01_characters_of_several_tokens(tmp_path):
    emoji, kanji, accent = "😀".encode(), "日".encode(), "é".encode()
    tokens = vocabulary(emoji[:1] + emoji[1:2], kanji[:2], " a", " b")
    ids = {data: i for i, data in enumerate(tokens.token_bytes) if data}
    one = [ids[emoji[:2]], ids[emoji[2:3]], ids[emoji[3:]], ids[b" a"], ids[kanji[:2]], ids[kanji[2:]], ids[b" b"]]
    two = [ids[kanji[:2]], ids[kanji[2:]], ids[b" b"], ids[accent[:1]], ids[accent[1:]], ids[b" a"], *one[:3]]
    session = session_that(tokens, after({"one\nassistant\n": one, "two\nassistant\n": two}))
    program = program_of(STREAMS, tmp_path)
    done = side_by_side(program, session, ("say", "one", 100), ("say", "two", 100), ("say", "one", 2), ("say", "two", 1))
    assert [value for value, _ in done] == ["😀 a日 b", "日 bé a😀", "", ""]  # an unfinished character is left out
    for value, pieces in done:
        assert "".join(pieces) == value and "\ufffd" not in value and all(pieces)
    assert [len(pieces) for _, pieces in done] == [4, 5, 0, 0]


def test_b02_spaces_of_a_sentencepiece_vocabulary(tmp_path):
    folder = write_folder(tmp_path, sentencepiece_json())
    tokenizer = load_tokenizer(folder)
    five = [tokenizer.encode("hi")[0], *tokenizer.encode(" hi hi w hi")]
    assert tokenizer.token_bytes[five[1]] == b" hi"
    tail = tokenizer.encode(" hi hi")
    answers = {"five\nassistant\n": five, "branch 0\nassistant\n": tail, "branch 1\nassistant\n": tail[:1]}
    session = session_that(tokenizer, after(answers), load_template(folder, tokenizer))
    program = program_of(STREAMS, tmp_path, level=0)
    (whole, pieces), ((first, second), both), (ends, _) = side_by_side(
        program, session, ("say", "five", 100), ("twice",), ("branches",))
    assert "".join(pieces) == whole == "hi hi hi w hi" == tokenizer.decode_bytes(five).decode() and len(pieces) > 3
    assert first + second == whole and second.startswith(" ") and "".join(both) == whole
    assert list(ends) == [" hi hi", " hi"]
    texts = [tokenizer.decode_bytes(r.prompt).decode() for r in session.requests]
    assert sum(t.endswith(f"assistant\n{first}") for t in texts) >= 3  # what is shown is what the next piece follows


# ------------------------------------------------------------------------ B-03


@pytest.mark.parametrize("tokens, stop, value, match", [
    (["ABC", "DEF", "G", "HI", "JKL"], ["DEFGHIJ"], "ABC", "DEFGHIJ"),
    (["ABC", "xDEFy", "no"], ["DEF"], "ABCx", "DEF"),
    (["ABC", "DE", "F"], ["DEF", "DE"], "ABC", "DE"),
    (["ABC", "DEF"], ["DEF", "DE"], "ABC", "DE"),
    (["A", "B", "C", "D", "E", "F", "G"], ["EFG", "DEFG", "CDE"], "AB", "CDE"),
    (["ABCDEFG"], ["EFG", "DEFG", "CDE"], "AB", "CDE"),
    (["J", "x", "HIJ"], ["HIJ"], "Jx", "HIJ"),
])
def test_b03_stops(tokens, stop, value, match, tmp_path):
    """The literal before ends in `DEFGHI`, so that a stop counted from there would be found at once."""
    vocab = vocabulary(*tokens)
    ids = [vocab.encode(t)[0] for t in tokens]
    assert [vocab.token_bytes[i].decode() for i in ids] == tokens
    session = session_that(vocab, after({"#DEFGHI": ids}))
    stops = ", ".join(f'"{s}"' for s in stop)
    program = program_of(f'''
        def f() -> str:
            raw:
                "#DEFGHI"
                x = gen(stop=[{stops}], stream=True, heal=False, logprobs=1)
                "|"
                y = gen(max_tokens=1, heal=False)
            return x
    ''', tmp_path, level=0)
    ended = run(program, session, "f")
    assert ended.value == value and "".join(text for _, text in ended.streamed) == value
    assert vocab.decode_bytes(session.requests[1].prompt).decode() == f"#DEFGHI{value}|"
    # Nothing was generated after the match: the second piece takes no token but its end.
    assert ended.report.generated <= len(tokens)
    done = asyncio.run(_finish(vocab, ids, stop))
    assert (done.text, done.finish.value, done.stop) == (value, "stop", match)


async def _finish(vocab, ids, stop):
    from lmc.runtime.request import GenerateRequest

    session = session_that(vocab, after({"#DEFGHI": ids}))
    try:
        return await session.generate(GenerateRequest(tuple(vocab.encode("#DEFGHI")), 50, stops=tuple(stop)))
    finally:
        session.close()


# ------------------------------------------------------- B-01 and B-03, cut at every place


def token(text: str) -> int:
    return TOKENS.token_bytes.index(text.encode())


def always(*best: int):
    """A model that writes these tokens one after the other behind any prompt, as far as it may, and then ends."""
    end = min(TOKENS.end_ids)

    def script(ids: tuple[int, ...]):
        for count in range(len(best), 0, -1):
            if tuple(ids[-count:]) == best[:count]:
                return {best[count] if count < len(best) else end: 30.0}
        return {best[0]: 30.0}

    return script


CHARACTERS = '''
    def f(n: int) -> str:
        raw:
            "Say: "
            v = gen(max_tokens=n, stream=True, heal=False)
        return v
'''


@pytest.mark.parametrize("limit, value", [(20, "é漢 the😀 the"), (2, "é"), (3, "é"), (4, "é"), (5, "é漢"), (7, "é漢 the"), (9, "é漢 the")])
def test_b01_no_piece_of_a_stream_is_half_a_character(limit, value, tmp_path):
    """B-01: one-byte tokens spell characters of two, three and four bytes; a run that is cut drops the unfinished one."""
    data = "é漢".encode()
    ids = (*data, token(" the"), *"😀".encode(), token(" the"))
    assert all(TOKENS.token_bytes[b] == bytes([b]) for b in data)
    ended = run(program_of(CHARACTERS, tmp_path), scripted_session(always(*ids)), "f", limit)
    pieces = [text for _, text in ended.streamed]
    assert ended.error is None and ended.value == value == "".join(pieces)
    assert not any("\ufffd" in piece for piece in pieces)


STOPS = '''
    def f() -> str:
        raw:
            "xyz D"
            v = gen(max_tokens=20, stop={stops}, stream=True, heal=False)
        return v
'''


@pytest.mark.parametrize("stops, value", [
    ('"DEFGHIJ"', "ABC"),                   # spread over many tokens
    ('["DEFGHIJ", "DEF"]', "ABC"),          # of two, the one that completes first
    ('["HIJKLM", "GHI"]', "ABCDEF"),
    ('"ABC"', ""),
    ('"DABC"', "ABCDEFGHIJKL"),             # begins in the literal: its text never counts
    ('"the"', "ABCDEFGHIJKL"),
])
def test_b03_stops_are_found_in_characters(stops, value, tmp_path):
    """B-03: whatever the tokens, the value ends before the stop, and nothing of the stop is ever shown."""
    ended = run(program_of(STOPS.format(stops=stops), tmp_path), scripted_session(always(*b"ABCDEFGHIJKL")), "f")
    assert ended.error is None and ended.value == value
    assert "".join(text for _, text in ended.streamed) == value


def test_b03_a_stop_inside_one_token(tmp_path):
    """B-03: the token ` the` holds the stop `th`; what is kept of it belongs to the context."""
    source = STOPS.format(stops='"th"') + "\n"
    ended = run(program_of(source, tmp_path), scripted_session(always(*b"AB", token(" the"))), "f")
    assert ended.value == "AB " == "".join(text for _, text in ended.streamed)
