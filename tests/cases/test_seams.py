"""Failures of the field at the seams of text and tokens (cases A-03, B-01, B-03), run as programs on a scripted model."""

import pytest

from lmc.parser.check import check
from tests.runtime.programs import TOKENS, program_of, run, scripted_session

END = min(TOKENS.end_ids)


def token(text: str) -> int:
    return TOKENS.token_bytes.index(text.encode())


def always(*best: int):
    """A model that writes these tokens one after the other behind any prompt, as far as it may, and then ends."""

    def script(ids: tuple[int, ...]):
        for count in range(len(best), 0, -1):
            if tuple(ids[-count:]) == best[:count]:
                return {best[count] if count < len(best) else END: 30.0}
        return {best[0]: 30.0}

    return script


SEAM = '''
    def f() -> list[str]:
        raw:
            "The sky is "
            v = gen(max_tokens=1{heal})
        return [v]
'''


def test_a03_a_space_at_the_end_is_reopened(tmp_path):
    """A-03: with healing the value is the word alone, and the context has one space."""
    session = scripted_session(always(token(" the")))
    ended = run(program_of(SEAM.format(heal=""), tmp_path), session, "f")
    assert ended.error is None and ended.value == ("the",)
    (request,) = session.requests
    assert TOKENS.decode_bytes(request.prompt) + request.heal == b"The sky is " and request.heal == b" "


def test_a03_without_healing_the_text_stands_as_it_is_and_check_warns(tmp_path):
    """A-03: the prompt is the tokens of the text, and `lmc check` says once that it ends in a space."""
    source = SEAM.format(heal=", heal=False")
    session = scripted_session(always(token(" the")))
    ended = run(program_of(source, tmp_path), session, "f")
    assert ended.value == (" the",)
    (request,) = session.requests
    assert list(request.prompt) == TOKENS.encode("The sky is ") and request.heal == b""
    warnings = [d for d in check(str(tmp_path / "program.lmp")).diagnostics if d.code == "W101"]
    assert len(warnings) == 1 and warnings[0].span.line == 3


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
