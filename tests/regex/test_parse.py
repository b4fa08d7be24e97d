"""What the dialect refuses, and where it says so."""

import subprocess
import sys

import pytest

from lmc.regex.parse import RegexError, odd_ranges, parse_regex

REFUSED = [
    (r"a(?=b)", 1, "look-around is not supported"),
    (r"a(?!b)", 1, "look-around is not supported"),
    (r"(?<=a)b", 0, "look-around is not supported"),
    (r"(?<!a)b", 0, "look-around is not supported"),
    (r"(a)b\1", 4, "a back-reference is not supported"),
    (r"(?P<n>a)(?P=n)", 8, "a back-reference is not supported"),
    (r"(a)?(?(1)b|c)", 4, "a conditional group is not supported"),
    (r"(?>a)", 0, "an atomic group is not supported"),
    (r"a(?#note)b", 1, "a comment is not supported"),
    (r"a++", 2, "a quantifier cannot follow a quantifier"),
    (r"a**", 2, "a quantifier cannot follow a quantifier"),
    (r"(a)?+", 4, "a quantifier cannot follow a quantifier"),
    (r"a{2}{3}", 4, "a quantifier cannot follow a quantifier"),
    (r"a{3,1}", 1, "the count {3,1} ends before it begins"),
    (r"a{x}", 1, "`{` begins a count"),
    (r"[]a]", 0, "a class cannot begin with `]`"),
    (r"[^]]", 0, "a class cannot begin with `]`"),
    (r"x[a", 1, "the class is not closed"),
    (r"[z-a]", 1, "the range z-a ends before it begins"),
    (r"[a-\d]", 1, "a range goes from one character to another"),
    (r"[\w-.]", 1, "a range goes from one character to another"),
    (r"a\b", 1, "a word boundary is not supported"),
    (r"a\B", 1, "a word boundary is not supported"),
    (r"^*a", 0, "an anchor cannot be repeated"),
    (r"(?m)a", 0, "the flag 'm' is not supported"),
    (r"(?x: a)", 0, "the flag 'x' is not supported"),
    (r"a(?i)b", 1, "flags for the whole regex stand at its start"),
    (r"\ud83d\ude00", 0, "the escape is not a Unicode character"),
    (r"(a", 0, "missing ), unterminated subpattern"),
    (r"a)", 1, "unbalanced parenthesis"),
    (r"*a", 0, "nothing to repeat"),
    (r"ab\q", 2, r"bad escape \q"),
    (r"\p{L}", 0, r"bad escape \p"),
    (r"(?P<a>x)(?P<a>y)", 12, "redefinition of group name"),
    ("a\\", 1, "bad escape (end of pattern)"),
    ("a{99999999999}", 0, "the repetition number is too large"),
    ("(" * 3000 + ")" * 3000, 0, "the regex is nested too deeply"),
]


@pytest.mark.parametrize("pattern, position, message", REFUSED, ids=[p[:20] for p, _, _ in REFUSED])
def test_refused_with_its_place(pattern, position, message):
    with pytest.raises(RegexError) as caught:
        parse_regex(pattern)
    assert message in caught.value.message
    assert caught.value.position == position


@pytest.mark.parametrize("pattern",
    ["", "a|", "(?:)", "(?P<year>\\d)", "a??b*?c+?d{1,2}?", "(?is)a.", "(?i-s:a)", "[-a]", "[a-]", "a{,3}", "^a$"])
def test_accepted(pattern):
    parse_regex(pattern)


def test_random_text_is_parsed_or_refused_but_never_fails_otherwise():
    import random

    generator = random.Random(5)
    accepted = 0
    for _ in range(5000):
        pattern = "".join(generator.choices("ab()[]{}?*+|^$\\.-,:12<=!Px#é😀 \n", k=generator.randint(1, 9)))
        try:
            parse_regex(pattern)
            accepted += 1
        except RegexError as error:
            assert 0 <= error.position <= len(pattern) and error.message
    assert accepted > 200


def test_parsing_needs_neither_numpy_nor_torch():
    code = "import sys, lmc.regex.parse, lmc.pure, lmc.json_schema, lmc.type_text; print({'numpy', 'torch'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


@pytest.mark.parametrize("pattern, odd", [
    ("""[A-Za-z0-9.,!?'"-_<> ]""", [(15, '"-_', 62)]), ("[A-z]", [(1, "A-z", 58)]), ("x[+--][*-.]", [(7, "*-.", 5)]),
    ("[ -~][!-/:-@[-`{-~]", []), ("[a-z0-9A-F]", []), ("[,-.]", []), (r"[\x00-\x1f\--a]", []), ("[а-я😀-🙏]", []), ("[a-]-[-_]", []),
])
def test_ranges_that_were_hardly_meant(pattern, odd):
    assert odd_ranges(pattern) == odd
