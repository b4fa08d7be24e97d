"""Salted sets of the seven workloads that are small enough for tests: ids are bytes, so that every tokenizer of a test spells them."""

import itertools

REGEX = (
    r"""\{\n  "name": "[A-Z][a-z]{1,12} [A-Z][a-z]{1,12}",\n  "age": [1-9][0-9]{0,2},\n  "occupation": "(engineer|teacher|doctor|"""
    r"""farmer|artist|pilot)",\n  "city": "[A-Z][a-z]{1,14}",\n  "year": (19|20)[0-9]{2},\n  "status": "(active|retired|unknown)"\n\}"""
)


def small_set(salt: int) -> dict:
    """Prompts begin with the salt, as those of the real data do."""
    texts = (f"{salt}:{number}: {'abcdefghij'[number % 10] * 8}" for number in itertools.count())

    def ids() -> list[int]:
        return list(next(texts).encode())

    return {
        "W1": {"prefix": ids(), "suffix": [ids() for _ in range(4)], "new": 3},
        "W2": {"roots": [ids(), ids()], "branch": [[65], [66], [67]], "depth": 3, "new": 2},
        "W3": {"prompts": [ids(), ids()], "n": 3, "new": 3},
        "W4": {"prompts": [ids(), ids()], "regex": REGEX},
        "W5": {"turns": [[ids(), ids()], [ids(), ids()]], "new": 3},
        "W6": {"essays": [ids(), ids()], "dims": [[68], [69]], "merge_sep": [[70], [71]], "merge_tail": [72], "new": 2, "merge_new": 4},
        "W7": {"prompt": ids(), "prompts32": [ids() for _ in range(32)], "decode": 2},
    }
