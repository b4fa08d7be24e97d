"""What `lmc bench` and an engine beside it say to each other: JSON objects, one a line, on the engine's standard input and output.

    > {"op": "open", "model": "/…/smollm2-135m-instruct", "dtype": "bfloat16", "threads": 2, "pool_bytes": 2147483648, "parallel": 32}
    < {"event": "ready", "engine": "vLLM 0.32.0", "precision": "bfloat16", "can": ["free", "regex", "score"], "notes": []}
    > {"op": "generate", "number": 1, "ids": [1, 42, …], "max_tokens": 16, "ignore_eos": true}
    > {"op": "generate", "number": 2, "ids": [1, 43, …], "max_tokens": 16, "ignore_eos": true}
    < {"event": "done", "number": 2, "ids": [7, …], "text": "…", "finish": "length", "computed": 12, "cached": 640}
    < {"event": "failed", "number": 1, "error": "ValueError: the prompt is longer than 8192"}
    > {"op": "stats"}
    < {"event": "stats", "computed": 12, "cached": 640, "generated": 16, "passes": 17}
    > {"op": "reset"}
    < {"event": "reset"}
    > {"op": "close"}
    < {"event": "closed"}

**open** comes first and once.  model: a Hugging Face folder (config.json, model.safetensors, tokenizer.json); gguf: the same weights as
a GGUF file, where there is one; dtype: the precision class that is asked for; threads: processor threads; pool_bytes: memory for keys and
values, where the engine can be told; parallel: the most requests that are under way at a time.  `ready` says what really runs: engine and
version, precision (of weights and products), `can`, and notes for people (block sizes, what is emulated, what is ignored).

    can     free            text without constraint   stop     stop texts        ignore_eos     end tokens are passed over
            regex, schema   constrained text          seed     a request's own random numbers
            score           log-probabilities         ids      prompts go in as token ids (else as the text that they spell)
            programs        its own programs of the small workloads; where that is all, it takes no `generate`

**generate** may come at any time, also while others run.  `number` is the caller's and comes back.  ids: the prompt's tokens, control
tokens included; max_tokens; and where they are not the default: temperature (0: the likeliest token), top_p (1), seed (none), stop (no
texts), regex (none; the whole text matches), schema (none; JSON Schema as text), ignore_eos (false; true: an end token is never drawn,
the likeliest other one is).  `done`: ids, the tokens generated, an end token not among them; text, without the stop; finish (`stop`,
`length`, or `eos` where the engine does not tell an end token from a stop it is `stop`); computed and cached, the prompt's tokens that
went through the model and that were found in a cache (null where the engine does not say).

**score**: number, ids, start.  `done`: logprobs, of `ids[start:]` each given all before it; computed, cached.

**program**: number, name, rows.  The engine runs a program of its own language, `few_shot`, `tree`, `samples`, `extract`, `chat` or `judge`, once for
each row, side by side; a row holds the arguments of the function of that name in `examples/peers`.  `done`: texts, everything that was
generated; lengths, the tokens of each generation; prompt, the tokens of all their prompts; computed, cached.

**cancel**: number.  Its request is given up; it may still be answered, and nobody waits for that.

**reset** empties the cache; nothing is under way then.  **stats**: sums since `open`; passes: forward passes, null where not known.

An engine that cannot do what a request asks answers `failed` and never does something else in silence.  The end of standard input is
`close`.  Whatever an engine prints goes to standard error.  Adapters know nothing of `lmc`, and this file knows no engine:

    class Mine(Engine): …
    if __name__ == "__main__":
        serve(Mine())
"""

import asyncio
import ctypes
import json
import os
import signal
import subprocess
import sys
import traceback

# A prompt of 100,000 tokens is a line of 700 kB.
_LONGEST_LINE = 1 << 26
# Requests that come together are computed together: an engine with fixed batches waits until none has come for so long, in seconds.
_QUIET = 0.005


class Engine:
    """What an adapter fills in.  Each method may raise: the message goes back as `failed`."""

    def __init__(self):
        self.computed = self.cached = self.generated = 0
        self.passes = None

    async def open(self, job):
        """Start; gives the fields of `ready`."""
        raise NotImplementedError

    async def generate(self, ask):
        """Gives the fields of `done`."""
        raise NotImplementedError

    async def score(self, ask):
        """Gives `logprobs`."""
        raise ValueError("this engine gives no log-probabilities of a prompt")

    async def program(self, ask):
        """Gives the fields of `done` for a program."""
        raise ValueError("this engine has no language for programs")

    async def reset(self):
        """Empty the cache."""
        raise NotImplementedError

    async def close(self):
        """Free what is held outside this process."""

    def stats(self):
        return {"computed": self.computed, "cached": self.cached, "generated": self.generated, "passes": self.passes}

    def count(self, answer):
        """Adds an answer to the sums.  A count that nobody knows makes the sum unknown."""
        for name in ("computed", "cached"):
            one, so_far = answer.get(name), getattr(self, name)
            setattr(self, name, None if one is None or so_far is None else so_far + one)
        self.generated += len(answer.get("ids", ())) + sum(answer.get("lengths", ()))


class BatchEngine(Engine):
    """An engine that computes a fixed batch at a time: what is asked for together is one batch, generations and scores apart.

    `run` and `run_scores` are called in a thread, one at a time.
    """

    def __init__(self):
        super().__init__()
        self._waiting = {}
        self._running = None

    def check(self, ask):
        """Raises where a generation asks for what cannot be done: it is refused before it is in a batch with others."""

    def run(self, asks):
        """Answers for generations, in their order; an exception in the place of one that failed."""
        raise NotImplementedError

    def run_scores(self, asks):
        """The same for scores."""
        raise ValueError("this engine gives no log-probabilities of a prompt")

    async def generate(self, ask):
        self.check(ask)
        return await self._in_batch(self.run, ask)

    async def score(self, ask):
        return await self._in_batch(self.run_scores, ask)

    async def _in_batch(self, work, ask):
        done = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(work, []).append((ask, done))
        if self._running is None:
            self._running = asyncio.create_task(self._work_off())
        return await done

    async def _work_off(self):
        try:
            while self._waiting:
                count = None
                while count != (now := sum(map(len, self._waiting.values()))):
                    count = now
                    await asyncio.sleep(_QUIET)
                waiting, self._waiting = self._waiting, {}
                for work, batch in waiting.items():
                    await self._answer(work, batch)
        finally:
            self._running = None

    async def _answer(self, work, batch):
        answers = await asyncio.to_thread(self._answers, work, [ask for ask, _ in batch])
        for (_, done), answer in zip(batch, answers):
            if done.done():
                continue
            if isinstance(answer, Exception):
                done.set_exception(answer)
            else:
                done.set_result(answer)

    def _answers(self, work, asks):
        """Where a batch fails as a whole each request is tried alone, so that one of them fails no other."""
        try:
            return work(asks)
        except Exception as error:
            if len(asks) == 1:
                return [error]
            traceback.print_exc()
            return [answer for ask in asks for answer in self._answers(work, [ask])]


def serve(engine):
    """Answers standard input until it ends."""
    _end_with_parent()
    # What a library prints must not come between the lines.
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    asyncio.run(_Serving(engine, channel).run())
    # Libraries leave threads behind that would keep the process alive.
    channel.close()
    sys.stderr.flush()
    os._exit(0)


def _end_with_parent():
    """An engine must not stay behind when the benchmark is killed, and its own processes not behind it, however it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getpgrp() == os.getpid():
        # Engines fork, so the end of a pipe would tell nothing: their children hold it open.  It is in a session of its own, so that it is
        # awake while the engine is stopped.
        watch = "trap '' HUP INT TERM; while kill -0 $0 2>/dev/null; do sleep 2; done; kill -9 -$0"
        subprocess.Popen(["sh", "-c", watch, str(os.getpid())], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         start_new_session=True)


class _Serving:
    def __init__(self, engine, channel):
        self.engine, self.channel = engine, channel
        self.tasks = {}

    async def run(self):
        reader = asyncio.StreamReader(limit=_LONGEST_LINE)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            message = json.loads(line)
            if message["op"] == "close":
                break
            await self.take(message)
        for task in list(self.tasks.values()):
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        await self.engine.close()
        self.say({"event": "closed"})

    async def take(self, message):
        operation, number = message["op"], message.get("number")
        if operation in ("generate", "score", "program"):
            task = self.tasks[number] = asyncio.create_task(self.answer(operation, message))
            task.add_done_callback(lambda _: self.tasks.pop(number, None))
        elif operation == "cancel":
            if number in self.tasks:
                self.tasks[number].cancel()
        else:
            try:
                self.say(await self.order(operation, message))
            except Exception as error:
                self.say_failed(number, error)

    async def order(self, operation, message):
        if operation == "open":
            return {"event": "ready", "notes": [], **await self.engine.open(message)}
        if operation == "reset":
            await self.engine.reset()
            return {"event": "reset"}
        if operation == "stats":
            return {"event": "stats", **self.engine.stats()}
        raise ValueError(f"no operation `{operation}`")

    async def answer(self, operation, message):
        number = message["number"]
        try:
            answer = await getattr(self.engine, operation)(message)
        except asyncio.CancelledError:
            self.say({"event": "failed", "number": number, "error": "cancelled"})
        except Exception as error:
            self.say_failed(number, error)
        else:
            self.engine.count(answer)
            self.say({"event": "done", "number": number, **answer})

    def say_failed(self, number, error):
        traceback.print_exception(error)
        self.say({"event": "failed", "number": number, "error": f"{type(error).__name__}: {error}"[:1000]})

    def say(self, message):
        self.channel.write(json.dumps(message) + "\n")
        self.channel.flush()
