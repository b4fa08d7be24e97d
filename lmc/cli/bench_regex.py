"""`lmc bench regex`: milliseconds of processor time to build the automata of the design's table, from the text of the regex.

    date                      0.9 ms    design 1.2 ms     13 states    6 classes

`design` is what the prototype took on another machine; the aim is at most twice that.  The last rows are refused, and soon.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator

_WORD = "abcdefghijklmnopqrstuvwxyz"
_STRING = r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-f]{4})*"'
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?"


def _words(count: int) -> str:
    generator = random.Random(1)
    return "|".join(sorted({"".join(generator.choices(_WORD, k=generator.randint(4, 10))) for _ in range(count)}))


def _object() -> str:
    inner = rf'\{{"street":{_STRING},"number":{_NUMBER},"tags":\[(?:{_STRING}(?:,{_STRING})*)?\]\}}'
    return rf'\{{"name":{_STRING},"age":{_NUMBER},"address":{inner},"home":(?:null|{inner})\}}'


def rows() -> list[tuple[str, str, float]]:
    """Name, regex, and the milliseconds of the design."""
    return [
        ("date", r"\d{4}-\d{2}-\d{2}", 1.2),
        ("iso datetime", r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?(?:Z|[+-]\d{2}:\d{2})", 2.0),
        ("ipv4", r"(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)", 1.3),
        ("e-mail", r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}", 0.9),
        ("url", r"https?://[a-zA-Z0-9.-]+(?::\d+)?(?:/[a-zA-Z0-9._~/-]*)?(?:\?[a-zA-Z0-9=&]*)?", 1.8),
        ("JSON string", _STRING, 1.1),
        ('"[^"]{0,200}"', '"[^"]{0,200}"', 39),
        ("500 words", _words(500), 60),
        ("JSON object, depth 2", _object(), 13),
        ("choice and prose tail", r"(?:yes|no|maybe): [^\n]{10,100}\.", 24),
        ('[^"]{0,1000}', '[^"]{0,1000}', 236),
        ("5,000 words", _words(5000), 613),
        (".*a.{12}", ".*a.{12}", 1616),
        ("(x{1,30}){1,30}", "(x{1,30}){1,30}", 173),
        (r"(\w+\s?){1,30}", r"(\w+\s?){1,30}", 13),
        ("[\\U00010000-\\U0010ffff]", "[\U00010000-\U0010ffff]", 406),
        ("(a|b){0,50}c", "(a|b){0,50}c", 2.5),
    ]


REFUSED = ["(a{1,99}){1,99}", "((a{1,99}){1,99}){1,99}", ".*a.{40}", "(.{1,999}){1,999}"]


def regex_table(repeat: int) -> Iterator[str]:
    from lmc.regex.build import compile_regex
    from lmc.regex.parse import RegexError

    compile_regex("warm")
    for name, pattern, design in rows():
        times = []
        for _ in range(repeat):
            started = time.process_time()
            dfa = compile_regex(pattern)
            times.append(1000 * (time.process_time() - started))
        own = statistics.median(times)
        mark = "" if own <= 2 * design else "   over twice the design"
        yield f"{name:26}{own:9.1f} ms   design {design:7.1f} ms {dfa.states - 1:8,} states {dfa.table.shape[1]:4} classes{mark}"
    for pattern in REFUSED:
        started = time.process_time()
        try:
            said = f"{compile_regex(pattern).states - 1:,} states"
        except RegexError as error:
            said = str(error)
        yield f"{pattern:26}{1000 * (time.process_time() - started):9.1f} ms   {said}"
