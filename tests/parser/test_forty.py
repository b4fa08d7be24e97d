"""A file with forty planted mistakes: all forty are reported, in their places, and nothing else."""

from pathlib import Path

from lmc.parser.check import check

FILE = Path(__file__).parent / "forty.lmp"

# Code, the mistake as it is written, and what stands before it on its line.
PLANTED = [
    ("E0205", '"nowhere.lmp"', "import "), ("E0602", "5..1", "type Score = "), ("E0313", "Lable", "    label: "),
    ("E0101", "str", "    name "), ("E0113", '"Bob"', 'NAMES = ["Ann" '), ("E0009", "\\d", 'PATTERN = "'), ("E0312", "[]", "EMPTY = "),
    ("E0010", "'single'", "QUOTED = "), ("E0701", "search", "extern def "), ("E0104", "", "def late(n: int) -> int"),
    ("E0006", "(n + m", "    x = "), ("E0313", "integer", "def typed(n: "), ("E0306", "text", "def typed(n: integer, "),
    ("E0201", "reveiw", "    if "), ("E0307", 'n = "three"', "    "), ("E0308", "review + 3", "    return "),
    ("E0310", "items}", "        Items: ${"), ("E0201", "itms", "        Other: ${"), ("E0201", "undefined_here", '        ${"inner ${'),
    ("E0305", "fine()", "    a = "), ("E0302", "3)", "    b = fine(1, 2, "), ("E0303", "k=1", "    c = fine(1, "), ("E0301", '"x"', "    d = fine("),
    ("E0201", "broken_call", "    e = shaky(a, b) + late(c) + "), ("E0322", "append", "    xs."), ("E0318", "trim", "    t = s."),
    ("E0309", "xs:", "    if "), ("E0322", '"%s" % t', "    return "), ("E0316", "label:", "    match "),
    ("E0404", "assistant: gen()", "        "), ("E0401", '"outside"', "    "), ("E0402", "gen(max_tokens=5)", "    user: "),
    ("E0407", "max_tokns", "        a = gen("), ("E0601", "(a", '        b = gen(regex=r"'), ("E0411", "-1", "        c = gen(temperature="),
    ("E0502", "y as ys", "    join "), ("E0501", "topics:\n        user: \"About ${t}?\"\n        assistant: z", "    fork t in "),
    ("E0506", "break", "    "), ("E0203", "m\n\ndef quick", "    return "), ("E0103", "&&", "    return n if n > 0 "),
]


def planted_places(text: str) -> list[tuple[int, int, str]]:
    """Line and column of each planted mistake, found in the text alone."""
    places = []
    for code, mistake, before in PLANTED:
        assert text.count(f"\n{before}{mistake}") + text.startswith(before + mistake) == 1, (code, before, mistake)
        at = text.index(before + mistake) if text.startswith(before + mistake) else text.index(f"\n{before}{mistake}") + 1
        places.append((text.count("\n", 0, at) + 1, len(before) + 1, code))
    return sorted(places)


def test_all_forty_are_reported_and_nothing_else():
    planted = planted_places(FILE.read_text(encoding="utf-8"))
    assert len(planted) == 40
    found = sorted((d.span.line, d.span.column, d.code) for d in check(str(FILE)).diagnostics)
    assert found == planted


def test_almost_all_say_what_to_do():
    without = [d.code for d in check(str(FILE)).diagnostics if not d.help]
    assert len(without) <= 4, without
