"""An automaton as a grammar in llama.cpp's own language, GBNF.

    (yes|no)!?      root ::= s1
                    s1 ::= [n] s2 | [y] s3
                    …
                    s5 ::= [!] s6 | ""

One rule for each state, so that the grammar is as unambiguous as the automaton.  GBNF has code points where automata have bytes: the bytes
of a character are read as one step.
"""

from __future__ import annotations

from collections.abc import Iterator

from lmc.regex.dfa import DEAD, START, ByteDfa

#: Of UTF-8: how many bytes follow a first byte, the bits of that which count, and the least code point that is written so.
_FIRST_BYTES = ((range(0x00, 0x80), 0, 0x7F, 0), (range(0xC2, 0xE0), 1, 0x1F, 0x80), (range(0xE0, 0xF0), 2, 0x0F, 0x800),
                (range(0xF0, 0xF5), 3, 0x07, 0x10000))
#: A run of code points and the state behind them.
_Run = tuple[int, int, int]


def gbnf(dfa: ByteDfa) -> str:
    """The grammar of what the automaton accepts."""
    rules, reached, known = ["root ::= s1"], [START], {START}
    following: dict[tuple[int, int], list[_Run]] = {}
    for state in reached:
        ways: dict[int, list[str]] = {}
        for low, high, target in _characters(dfa, state, following):
            ways.setdefault(target, []).append(_code(low) if low == high else f"{_code(low)}-{_code(high)}")
        for target in sorted(ways.keys() - known):
            known.add(target)
            reached.append(target)
        choices = [f"[{''.join(runs)}] s{target}" for target, runs in ways.items()]
        rules.append(f"s{state} ::= " + " | ".join(choices + ['""'] * bool(dfa.accepting[state])))
    return "\n".join(rules) + "\n"


def _characters(dfa: ByteDfa, state: int, following: dict[tuple[int, int], list[_Run]]) -> list[_Run]:
    """The characters that lead on from a state, in order."""
    def runs() -> Iterator[_Run]:
        for firsts, more, bits, least in _FIRST_BYTES:
            for byte in firsts:
                begun = dfa.step(state, bytes([byte]))
                for low, high, target in _following(dfa, begun, more, following):
                    base = (byte & bits) << 6 * more
                    yield max(base + low, least), base + high, target

    return _joined(runs())


def _following(dfa: ByteDfa, state: int, more: int, following: dict[tuple[int, int], list[_Run]]) -> list[_Run]:
    """What `more` further bytes of a character can be, as numbers from 0.  following: what is known already, by state and `more`."""
    if state == DEAD:
        return []
    if not more:
        return [(0, 0, state)]
    if (state, more) not in following:
        following[state, more] = _joined(
            ((bits << 6 * (more - 1)) + low, (bits << 6 * (more - 1)) + high, target) for bits in range(64)
            for low, high, target in _following(dfa, dfa.step(state, bytes([0x80 | bits])), more - 1, following))
    return following[state, more]


def _joined(runs: Iterator[_Run]) -> list[_Run]:
    """Runs that touch and lead to the same state are one."""
    joined: list[_Run] = []
    for low, high, target in runs:
        if joined and joined[-1][1] + 1 == low and joined[-1][2] == target:
            joined[-1] = (joined[-1][0], high, target)
        else:
            joined.append((low, high, target))
    return joined


def _code(point: int) -> str:
    if point < 0x80:
        return chr(point) if chr(point).isalnum() else f"\\x{point:02X}"
    return f"\\u{point:04X}" if point < 0x10000 else f"\\U{point:08X}"
