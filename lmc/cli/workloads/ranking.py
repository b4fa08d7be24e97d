"""Which passages fit a question best: Okapi BM25 (Robertson and Walker, 1994) over whole words.

    ranked(["Who built the bridge?"], ["Bread | …", "Valmont | A bridge of 1904…"], 1)      [["Valmont | A bridge of 1904…"]]
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

# How soon a word's repetitions stop to count, and how much long passages are held back: the usual values.
_SATURATION, _LENGTH = 1.5, 0.75


def ranked(questions: Sequence[str], passages: Sequence[str], count: int) -> list[list[str]]:
    """For each question its `count` best passages, best first; of equals the earlier one."""
    words = [Counter(_words(passage)) for passage in passages]
    sizes = [counts.total() for counts in words]
    mean = sum(sizes) / max(len(sizes), 1)
    holding: Counter[str] = Counter(word for counts in words for word in counts)
    rarity = {word: math.log(1 + (len(passages) - n + 0.5) / (n + 0.5)) for word, n in holding.items()}

    def fit(asked: set[str], place: int) -> float:
        counts, damped = words[place], _SATURATION * (1 - _LENGTH + _LENGTH * sizes[place] / mean)
        return math.fsum(rarity[word] * counts[word] * (_SATURATION + 1) / (counts[word] + damped) for word in asked if word in counts)

    best = []
    for question in questions:
        asked = set(_words(question))
        order = sorted(range(len(passages)), key=lambda place: (-fit(asked, place), place))
        best.append([passages[place] for place in order[:count]])
    return best


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
