"""The encyclopedia of the live agent: what was found in the recorded traces, by name.

    articles.search("mill of Asterby")              "The mill of Asterby is a water mill of 1742. It stands…"
    articles.lookup("mill of Asterby", "stands")    "(Result 1 / 1) It stands…"

It has no state, so that many agents can read it side by side.
"""

from __future__ import annotations

import re

from lmc.cli.workloads.data import Data

#: A name that is missing is answered with this many that it may have been meant for.
_SIMILAR = 3


class Articles:
    """Of the traces in the data."""

    __slots__ = ("_texts",)

    def __init__(self, data: Data):
        self._texts: dict[str, str] = {}
        for row in data.read("react_hotpotqa.jsonl"):
            for step in row["steps"]:
                if name := re.fullmatch(r"Search\[(.*)\]", step["action"]):
                    self._texts.setdefault(name[1].casefold(), step["observation"])

    def search(self, name: str) -> str:
        found = self._texts.get(name.strip().casefold())
        if found is not None:
            return found
        words = set(name.casefold().split())
        near = sorted(self._texts, key=lambda known: -len(words & set(known.split())))[:_SIMILAR]
        return f"Could not find [{name}]. Similar: {', '.join(near)}."

    def lookup(self, article: str, word: str) -> str:
        sentences = re.split(r"(?<=[.!?]) +", self._texts.get(article.strip().casefold(), ""))
        found = [sentence for sentence in sentences if word.casefold() in sentence.casefold()]
        return f"(Result 1 / {len(found)}) {found[0]}" if found else f"No sentence with [{word}]."
