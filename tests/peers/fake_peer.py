"""A peer that needs nothing: it writes the tokens 100, 101, … (or as sampled: seed + place), and keeps a cache of prompts that it has seen.

    python fake_peer.py [WORD …]

Words make it misbehave: `slow-open`, `dead-open`; `hang`, `die`, `babble` at a prompt that begins with 13; `batch` makes one batch of what comes
together; `child` starts a process that sleeps; `no-ignore-eos` is an engine that cannot go on behind its end token; `programs`
has programs of its own, `only-programs` nothing else.
"""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "peers"))

from peer_protocol import BatchEngine, Engine, serve  # noqa: E402

WORDS = set(sys.argv[1:])
UNLUCKY = 13


class Cache:
    """Prompts and what was written after them."""

    def __init__(self):
        self.seen = []

    def find(self, ids):
        return max((common(ids[:-1], one) for one in self.seen), default=0)

    def answer(self, ask):
        ids = ask["ids"]
        if max(ids) >= 1 << 20:
            raise ValueError(f"no token {max(ids)}")
        count = ask["max_tokens"] if ask.get("ignore_eos") or "regex" not in ask else 3
        first = 100 if not ask.get("temperature") else ask.get("seed", 0)
        written = [first + place for place in range(count)]
        cached = self.find(ids)
        self.seen.append([*ids, *written])
        text = "".join(f" {token}" for token in written)
        finish = "length"
        for stop in ask.get("stop", ()):
            if stop in text:
                text, finish = text[: text.index(stop)], "stop"
        return {"ids": written, "text": text, "finish": finish, "computed": len(ids) - cached, "cached": cached}


def common(one, other):
    return next((place for place, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))


class Opening:
    def opened(self, job):
        print("a library greets on standard output")
        if "dead-open" in WORDS:
            print("it cannot read the weights", file=sys.stderr, flush=True)
            sys.stderr.flush()
            os._exit(3)
        if "child" in WORDS:
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            print(f"child {child.pid}", file=sys.stderr)
            return {"notes": [f"child {child.pid}"]}
        return {}


class Fake(Engine, Opening):
    def __init__(self):
        super().__init__()
        self.cache, self.passes = Cache(), 0

    async def open(self, job):
        if "slow-open" in WORDS:
            await asyncio.sleep(600)
        can = ["ids", "free", "ignore_eos", "regex", "schema", "seed", "stop", "score"] + ["programs"] * ("programs" in WORDS)
        if "only-programs" in WORDS:
            can = ["programs"]
        return {"engine": "fake 1.0", "precision": job["dtype"], "can": can, **self.opened(job)}

    async def generate(self, ask):
        if ask["ids"][0] == UNLUCKY:
            await self.misbehave()
        if "no-ignore-eos" in WORDS and ask.get("ignore_eos"):
            raise ValueError("its end token is the end")
        self.passes += ask["max_tokens"]
        return self.cache.answer(ask)

    async def misbehave(self):
        if "hang" in WORDS:
            await asyncio.sleep(600)
        if "stuck" in WORDS:
            time.sleep(600)
        if "die" in WORDS:
            print("out of luck", file=sys.stderr, flush=True)
            os._exit(7)
        if "babble" in WORDS:
            os.write(SAYING.fileno(), b"Loading: 100%\n")
            await asyncio.sleep(600)

    async def score(self, ask):
        cached = self.cache.find(ask["ids"])
        self.cache.seen.append(ask["ids"])
        return {"logprobs": [-float(token) for token in ask["ids"][ask["start"] :]], "computed": len(ask["ids"]) - cached, "cached": cached}

    async def program(self, ask):
        if not WORDS & {"programs", "only-programs"}:
            return await super().program(ask)
        texts = [f"{ask['name']} of {', '.join(sorted(row))}" for row in ask["rows"]]
        return {"texts": texts, "lengths": [2] * len(texts), "prompt": 10 * len(texts), "computed": 4, "cached": 10 * len(texts) - 4}

    async def reset(self):
        self.cache = Cache()


class FakeBatches(BatchEngine, Opening):
    """`text` says how many were computed together; a token that there is not fails the batch that it is in."""

    def __init__(self):
        super().__init__()
        self.cache = Cache()

    async def open(self, job):
        return {"engine": "fake batches 1.0", "precision": job["dtype"], "can": ["ids", "free"], **self.opened(job)}

    def check(self, ask):
        if "regex" in ask:
            raise ValueError("no constraints")

    def run(self, asks):
        return [{**self.cache.answer(ask), "text": str(len(asks))} for ask in asks]

    def run_scores(self, asks):
        return [{"logprobs": [-float(len(asks))] * (len(ask["ids"]) - ask["start"]), "computed": 1, "cached": 0} for ask in asks]

    async def reset(self):
        self.cache = Cache()


if __name__ == "__main__":
    # The protocol's own output is a copy of this; `babble` writes to where it goes.
    SAYING = os.fdopen(os.dup(1), "wb", buffering=0)
    serve(FakeBatches() if "batch" in WORDS else Fake())
