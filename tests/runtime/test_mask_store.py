"""Masks on disk: read back as written, never trusted where broken, shared by equal automata, bounded in size."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmc.regex.build import compile_regex
from lmc.regex.dfa import START
from lmc.runtime import mask_store
from lmc.runtime.constraint import TokenConstraint, TokenIndex
from lmc.runtime.dry import DryModel
from lmc.runtime.mask_store import BadMasks, MaskStore, pack, unpack
from lmc.runtime.session import Session
from lmc.runtime.template import dry_template
from tests.runtime.programs import TOKENS, dry_session, program_of, run

BYTES = [bytes([b]) for b in range(256)]
INDEX = TokenIndex(BYTES)


@pytest.fixture
def none_made(monkeypatch):
    """Fails where a mask is made and not read."""
    def make(self, state):
        raise AssertionError("a mask was made")

    monkeypatch.setattr(TokenConstraint, "_make_mask", make)


def visited(constraint, text):
    state, masks = START, []
    for byte in text:
        masks.append(constraint.allowed(state))
        state = constraint.advance(state, bytes([byte]))
    return masks


def test_the_next_start_reads_what_the_last_one_made(tmp_path, request):
    store = MaskStore(tmp_path / "masks", INDEX)
    first = TokenConstraint(compile_regex("[a-z]{3}[^x]x"), INDEX, store)
    made = visited(first, b"abc")
    first.save()
    assert len(list((tmp_path / "masks").iterdir())) == 1
    request.getfixturevalue("none_made")
    again = TokenConstraint(compile_regex("[a-z]{3}[^x]x"), INDEX, MaskStore(tmp_path / "masks", TokenIndex(BYTES)))
    read = visited(again, b"abc")
    assert [m.tolist() for m in read] == [m.tolist() for m in made] and read[0].dtype == np.int64
    assert read[0] is read[1], "equal masks are one array again"
    with pytest.raises(AssertionError, match="a mask was made"):
        again.allowed(again.advance(START, b"abc"))


def test_nothing_new_is_not_written_again(tmp_path):
    store = MaskStore(tmp_path, INDEX)
    TokenConstraint(compile_regex("ab"), INDEX, store).save()
    assert list(tmp_path.iterdir()) == [], "no mask was asked for"
    first = TokenConstraint(compile_regex("ab"), INDEX, store)
    visited(first, b"a")
    first.save()
    (path,) = tmp_path.iterdir()
    path.write_bytes(b"")
    first.save()
    assert path.read_bytes() == b""
    second = TokenConstraint(compile_regex("ab"), INDEX, store)
    visited(second, b"ab")
    second.save()
    assert path.read_bytes(), "what was broken is made anew"


def test_other_automata_and_vocabularies_have_files_of_their_own(tmp_path):
    bigger = TokenIndex([*BYTES, b"ab"])
    for pattern, index in (("ab", INDEX), ("ac", INDEX), ("ab", bigger)):
        constraint = TokenConstraint(compile_regex(pattern), index, MaskStore(tmp_path, index))
        visited(constraint, b"a")
        constraint.save()
    assert len(list(tmp_path.iterdir())) == 3
    read = TokenConstraint(compile_regex("ab"), bigger, MaskStore(tmp_path, bigger))
    assert read.allowed(START).tolist() == [97, 256]
    assert TokenIndex([b"a", b"bc"]).digest() != TokenIndex([b"ab", b"c"]).digest() != TokenIndex([b"ab", b"c", b""]).digest()


masks = st.dictionaries(st.integers(1, 20), st.sampled_from([(), (3,), tuple(range(0, 200, 2)), tuple(range(200)), (0, 199)]))


@settings(max_examples=60, deadline=None)
@given(masks, st.data())
def test_every_changed_byte_is_seen(rows, data):
    shared = {ids: np.array(ids, np.int64) for ids in rows.values()}
    packed = pack({state: shared[ids] for state, ids in rows.items()}, 200)
    assert {state: tuple(ids.tolist()) for state, ids in unpack(packed, 200, 21).items()} == rows
    place = data.draw(st.integers(0, len(packed) - 1))
    changed = packed[:place] + bytes([packed[place] ^ data.draw(st.integers(1, 255))]) + packed[place + 1 :]
    for bad in (changed, packed[:place], packed + b"\0"):
        with pytest.raises(BadMasks):
            unpack(bad, 200, 21)


def test_masks_that_do_not_fit_are_refused():
    """With a right digest: what another version may have written."""
    masks = {3: np.array([1, 5], np.int64)}
    for packed, size, states in ((pack(masks, 200), 201, 21), (pack(masks, 200), 200, 3), (pack({0: masks[3]}, 200), 200, 21),
                                 (pack({3: np.array([5, 1])}, 200), 200, 21), (pack({3: np.array([1, 200])}, 200), 200, 21)):
        with pytest.raises(BadMasks):
            unpack(packed, size, states)


def test_the_files_used_last_stay(tmp_path, monkeypatch):
    store = MaskStore(tmp_path, INDEX)
    automata = [compile_regex(pattern) for pattern in ("ab", "cd", "ef")]
    mask = {START: np.array([1, 2, 3], np.int64)}
    size = len(pack(mask, 256))
    monkeypatch.setattr(mask_store, "MOST_BYTES", 2 * size)
    for age, dfa in zip((300, 200, 100), automata):
        store.save(dfa, mask)
        for path in tmp_path.glob(f"*{dfa.digest()}*"):
            os.utime(path, (1_000_000 - age, 1_000_000 - age))
    assert [bool(list(tmp_path.glob(f"*{dfa.digest()}*"))) for dfa in automata] == [False, True, True]
    store.load(automata[1])
    store.save(automata[0], mask)
    assert [bool(store.load(dfa)) for dfa in automata] == [True, True, False], "reading counts as use"


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "masks").write_text("a file")
    store = MaskStore(tmp_path / "masks", INDEX)
    constraint = TokenConstraint(compile_regex("ab"), INDEX, store)
    assert constraint.allowed(START).tolist() == [97]
    constraint.save()
    assert (tmp_path / "masks").read_text() == "a file"


def test_equal_automata_of_two_programs_share_their_masks(tmp_path):
    session = dry_session()
    first, second, other = (compile_regex(pattern) for pattern in ("a+", "a+", "b+"))
    assert session.constraint(first) is session.constraint(second) is not session.constraint(other)
    session.close()


def test_a_session_keeps_its_masks(tmp_path, request):
    source = '''
    def main() -> "yes" | "no":
        user: "Well?"
        assistant: answer = gen("yes" | "no")
        return answer
    '''
    program = program_of(source, tmp_path)
    values = []
    for _ in range(2):
        session = Session(DryModel(TOKENS), TOKENS, dry_template(TOKENS), slots=4096, masks=tmp_path / "masks")
        values.append(run(program, session, "main").value)
        session.close()
        assert list((tmp_path / "masks").glob("*.masks"))
        request.getfixturevalue("none_made")
    assert values[0] == values[1]
