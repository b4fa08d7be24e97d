"""LMQL as a peer: text under its own constraints, on its local transformers model, requests side by side as queries of one event loop.

    "{prompt}[TEXT]" where len(TOKENS(TEXT)) < 17 and STOPS_BEFORE(TEXT, "\\n") and REGEX(TEXT, r"[0-9]+")

LMQL takes text and not token ids: a prompt goes in as what its ids spell.  Its model runs in a process that it starts itself, batches
what comes together, and keeps nothing from request to request.  A least length puts the end token off.  Its REGEX may lose branches of
an alternation (`(active|any)` may end behind `a`), so its text is held against the regex here, and one that does not match has failed.
"""

import asyncio
import multiprocessing
import os
import re
import sys
import threading
from importlib.metadata import version

from peer_protocol import Engine, serve

# Seconds that a request may take.  What LMQL does for each token in Python makes a batch take minutes, and its two processes write to
# each other over a pipe whose ends may both be full.
LIMIT = 300


class Lmql(Engine):
    async def open(self, job):
        os.environ.update(TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1", OMP_NUM_THREADS=str(job["threads"]),
                          # Else it keeps pickled tokenizers in the user's home.
                          NO_CACHE="1")
        import transformers

        transformers.logging.set_verbosity_error()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(job["model"])
        self.job, self.late = job, False
        self.queries = await asyncio.to_thread(Queries, job)
        return {"engine": f"LMQL {version('lmql')} on transformers {transformers.__version__}", "precision": job["dtype"],
                "can": ["free", "ignore_eos", "regex", "stop"], "notes": [f"text in, its local model, no cache from request to request, at most {LIMIT} s a request"]}

    async def generate(self, ask):
        if ask.get("schema"):
            raise ValueError("LMQL has no JSON schema")
        if ask.get("top_p", 1) < 1:
            raise ValueError("LMQL's local model draws from all tokens, and has no top_p")
        prompt = self.tokenizer.decode(ask["ids"])
        try:
            text = await asyncio.wait_for(asyncio.wrap_future(self.queries.ask(prompt, ask)), LIMIT)
        except asyncio.TimeoutError:
            self.late = True
            raise RuntimeError(f"LMQL took more than {LIMIT} seconds") from None
        if ask.get("regex") and not re.fullmatch(ask["regex"], text):
            raise RuntimeError(f"LMQL's text does not match the regex: {text[-100:]!r}")
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        return {"ids": ids, "text": text, "finish": "length" if len(ids) >= ask["max_tokens"] else "stop", "computed": None, "cached": None}

    async def reset(self):
        # What has taken too long is still under way in its process.
        if self.late:
            await self.close()
            self.queries, self.late = await asyncio.to_thread(Queries, self.job), False

    async def close(self):
        if hasattr(self, "queries"):
            self.queries.end()


class Queries:
    """LMQL's event loop in a thread of its own, because it may block; and its model's process, which starts with the first query."""

    def __init__(self, job):
        import lmql
        from lmql.models.lmtp import lmtp_dcinprocess

        # A model that has ended would be handed out again.
        lmtp_dcinprocess.lmtp_model_inprocess_instances.clear()
        self.lmql, self.written = lmql, {}
        self.model = lmql.model("local:" + job["model"], tokenizer=job["model"], torch_dtype=job["dtype"])
        # Prompts are whole: it would put a begin token before each.
        self.model.get_tokenizer().tokenizer_impl.tokenizer.bos_token = None
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def ask(self, prompt, ask):
        """A concurrent future of the text."""
        return asyncio.run_coroutine_threadsafe(self._text(prompt, ask), self.loop)

    async def _text(self, prompt, ask):
        temperature = ask.get("temperature", 0.0)
        drawing = {"decoder": "sample", "temperature": temperature} if temperature else {"decoder": "argmax"}
        query = self._query(where(ask))
        result = await query(prompt, model=self.model, chunksize=ask["max_tokens"], **drawing)
        return result.variables["TEXT"]

    def _query(self, constraints):
        if constraints not in self.written:
            self.written[constraints] = self.lmql.query('"{prompt}[TEXT]" where ' + constraints, input_variables=["prompt"])
        return self.written[constraints]

    def end(self):
        for child in multiprocessing.active_children():
            child.kill()
        self.loop.call_soon_threadsafe(self.loop.stop)


def where(ask):
    """The request's limits in LMQL's language."""
    most = ask["max_tokens"]
    parts = [f"len(TOKENS(TEXT)) < {most + 1}"]
    if ask.get("ignore_eos"):
        parts.append(f"len(TOKENS(TEXT)) > {most - 1}")
    parts += [f"STOPS_BEFORE(TEXT, {stop!r})" for stop in ask.get("stop", ())]
    if ask.get("regex"):
        parts.append(f"REGEX(TEXT, {ask['regex']!r})")
    return " and ".join(parts)


if __name__ == "__main__":
    # Its model's process may import this file again.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    serve(Lmql())
