"""A peer that is our own engine behind the peers' protocol: what it answers is known to be right, token by token.  It runs the stand-in
model, unless it is opened with the folder of another one.

    python own_peer.py [WORD …]

Words change it: `other` writes other texts, as an engine with other
last bits does; `die` ends at the first generation after the warm-up.
"""

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "peers"))

from peer_protocol import Engine, serve  # noqa: E402

WORDS = set(sys.argv[1:])


class Own(Engine):
    async def open(self, job):
        self.asked = self.before = 0
        self.session, self.job = None, job
        self.start()
        can = ["ids", "free", "ignore_eos", "regex", "seed", "stop", "score"]
        return {"engine": "lmc itself", "precision": job["dtype"], "can": can}

    def start(self):
        from lmc.embed import cache_folder
        from lmc.runtime.open_session import open_session

        if self.session is not None:
            self.before += self.session.stats.steps
            self.session.close()
        self.session = open_session(model=self.job["model"], cache=cache_folder(), dry=not self.job["model"], dtype=self.job["dtype"])

    async def reset(self):
        self.start()

    def stats(self):
        return {**super().stats(), "passes": self.before + self.session.stats.steps}

    async def generate(self, ask):
        from lmc.regex.build import compile_regex
        from lmc.runtime.request import GenerateRequest, Sampling

        self.asked += 1
        if "die" in WORDS and self.asked > 1:
            print("out of luck", file=sys.stderr, flush=True)
            os._exit(7)
        constraint = self.session.constraint(compile_regex(ask["regex"])) if "regex" in ask else None
        seed = ask.get("seed", 0) + ("other" in WORDS)
        sampling = Sampling(ask.get("temperature", 0.0) or float("other" in WORDS), ask.get("top_p", 1.0), seed=seed)
        request = GenerateRequest(tuple(ask["ids"]), ask["max_tokens"], constraint=constraint, stops=tuple(ask.get("stop", ())),
                                  ignore_eos=ask.get("ignore_eos", False), sampling=sampling)
        found = await self.session.generate(request)
        finish = {"complete": "stop"}.get(found.finish.value, found.finish.value)
        return {"ids": found.ids, "text": found.text, "finish": finish, "computed": found.usage.computed, "cached": found.usage.cached}

    async def score(self, ask):
        from lmc.runtime.request import ScoreRequest

        (found,) = await self.session.score([ScoreRequest(tuple(ask["ids"]), ask["start"])])
        return {"logprobs": found.logprobs, "computed": found.usage.computed, "cached": found.usage.cached}


if __name__ == "__main__":
    serve(Own())
