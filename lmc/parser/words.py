"""The words that may not name a variable, a parameter or a function.  Fields, attributes and arguments may have any name.

    words.reserved("user")  ->  "a role word"
    words.reserved("essay") ->  None
"""

from __future__ import annotations

KEYWORDS = frozenset(
    "if elif else for while match case return break continue pass assert try except fork join branch resume with as "
    "and or not in is import from def".split()
)
ROLES = frozenset({"system", "user", "assistant", "raw"})
CONSTANTS = frozenset({"True", "False", "None"})
BUILTIN_TYPES = frozenset("str int float bool list dict".split())
BUILTIN_FUNCTIONS = frozenset(
    "gen select score image len range enumerate zip min max sum sorted abs round print input fail json parse_json bullets lines "
    "schema fields majority argmax top findall matches".split()
)
PYTHON_KEYWORDS = frozenset("class lambda async await yield del global nonlocal raise finally".split())

#: What cannot stand where a value is expected.
NOT_VALUES = KEYWORDS | ROLES | PYTHON_KEYWORDS


def reserved(word: str) -> str | None:
    """What `word` is that keeps it from being a name, or None."""
    if word in KEYWORDS:
        return "a keyword"
    if word in ROLES:
        return "a role word"
    if word in CONSTANTS:
        return "a constant"
    if word == "here":
        return "the current context"
    if word in BUILTIN_FUNCTIONS:
        return "a builtin function"
    if word in BUILTIN_TYPES:
        return "a builtin type"
    if word in PYTHON_KEYWORDS:
        return "a keyword of Python"
    return None
