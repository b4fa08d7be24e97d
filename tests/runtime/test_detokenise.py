"""Streaming gives whole characters and loses nothing; a cut keeps whole tokens and carries the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.runtime.detokenise import Detokeniser, settle, whole_characters


def cut_anywhere(data: bytes, cuts: list[int]) -> list[bytes]:
    """`data` as tokens, split at arbitrary places inside characters too."""
    places = sorted({c % (len(data) + 1) for c in cuts} | {0, len(data)})
    return [data[a:b] for a, b in zip(places, places[1:])]


@given(st.text(), st.lists(st.integers(0, 400)))
def test_streamed_pieces_join_to_the_text(text, cuts):
    stream = Detokeniser()
    assert "".join(stream.push(t) for t in cut_anywhere(text.encode("utf-8", "replace"), cuts)) == text.encode(
        "utf-8", "replace").decode()
    assert stream.pending == b""


def test_an_unfinished_character_is_held():
    stream = Detokeniser()
    assert stream.push(b"caf\xc3") == "caf"
    assert stream.pending == b"\xc3"
    assert stream.push(b"\xa9!") == "é!"


@given(st.binary(), st.lists(st.integers(0, 400)))
def test_bytes_that_are_no_text_read_as_one_decode(data, cuts):
    stream = Detokeniser()
    pieces = "".join(stream.push(t) for t in cut_anywhere(data, cuts))
    assert pieces == data[: len(data) - len(stream.pending)].decode("utf-8", "replace")


@pytest.mark.parametrize(
    "tokens, keep, expected",
    [
        ([b" caf", b"\xc3", b"\xa9", b" au", b" lait"], 8, (3, " a")),
        ([b"one", b" two"], 7, (2, "")),
        ([b"one", b" two"], 0, (0, "")),
        ([b"one", b" two"], 3, (1, "")),
        # The cut falls inside a character: it is dropped, and so is the token that began it.
        ([b"a", b"\xe4\xbd", b"\xa0"], 3, (1, "")),
        ([b"a", b"\xe4", b"\xbd\xa0"], 4, (3, "")),
        # A token that ends inside a character cannot stay although it lies before the cut.
        ([b"a\xe4", b"\xbd\xa0b"], 4, (0, "a你")),
        ([], 0, (0, "")),
    ],
)
def test_settle(tokens, keep, expected):
    assert settle(tokens, keep) == expected


@given(st.text(alphabet=st.characters(codec="utf-8")), st.lists(st.integers(0, 400)), st.integers(0, 400))
def test_settled_text_is_the_kept_text(text, cuts, keep):
    data = text.encode()
    tokens, keep = cut_anywhere(data, cuts), keep % (len(data) + 1)
    count, carry = settle(tokens, keep)
    assert b"".join(tokens[:count]).decode() + carry == data[: whole_characters(data[:keep])].decode()
