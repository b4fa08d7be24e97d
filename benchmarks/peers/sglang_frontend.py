"""Runs programs of SGLang's frontend language against a server, and counts what they ask it for.

    frontend = Frontend(lambda calls: runtime_backend("http://127.0.0.1:30000", calls))
    await frontend.run("few_shot", rows)        {"texts": […], "lengths": [16, …], "prompt": 20480, "computed": 1848, "cached": 18632}

An operation that fails ends a thread of the interpreter, and what waits for it may wait for ever: the first failure of a request ends the
run here, and what hangs is left to the end of the process.
"""

import asyncio
import threading
from concurrent.futures import Future
from importlib import import_module

# Seconds that a program has to end by itself after one of its requests has failed.
_LAST_WORDS = 5


class Calls:
    """What a run asks for.  Requests come from many threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.begin()

    def begin(self):
        """A run begins."""
        self.lengths, self.prompt, self.computed, self.cached = [], 0, 0, 0
        self.failed = Future()

    def count(self, written, prompt, cached):
        """written: tokens generated, None where the request only brings a prefix into the cache; cached: None where it is not known"""
        with self.lock:
            if written is not None:
                self.lengths.append(written)
                self.prompt += prompt
            if cached is None or self.cached is None:
                self.cached = self.computed = None
            else:
                self.cached += cached
                self.computed += prompt - cached

    def watched(self, request):
        """`request`, whose failures end the run."""
        def asked(*arguments, **named):
            try:
                return request(*arguments, **named)
            except BaseException as error:
                self.fail(error)
                raise

        return asked

    def fail(self, error):
        with self.lock:
            if not self.failed.done():
                self.failed.set_exception(error)


class Frontend:
    """make: gives a backend of the frontend, which tells the `Calls` that it gets what it asks for"""

    def __init__(self, make):
        self.make, self.turn = make, asyncio.Lock()
        self.calls = self.backend = None

    async def load(self):
        """Import the frontend, which takes seconds, and make the backend."""
        await asyncio.to_thread(import_module, "sglang_programs")
        self.calls = Calls()
        self.backend = await asyncio.to_thread(self.make, self.calls)

    def regex(self):
        """Of the program `extract`."""
        return import_module("sglang_programs").PERSON

    async def run(self, name, rows):
        """The fields of `done` for the program."""
        async with self.turn:
            if self.backend is None:
                await self.load()
            return await self._run(name, rows)

    async def _run(self, name, rows):
        calls, ended = self.calls, Future()
        calls.begin()
        threading.Thread(target=work, args=(self.backend, name, rows, ended), daemon=True).start()
        running, failed = asyncio.wrap_future(ended), asyncio.wrap_future(calls.failed)
        await asyncio.wait([running, failed], return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            # What is left behind must not count for another run.
            self.backend = None
            await asyncio.wait([running], timeout=_LAST_WORDS)
            if running.done():
                # Python complains of an error that nobody has asked for.
                running.exception()
            raise failed.exception()
        texts = running.result()
        return {"texts": texts, "lengths": calls.lengths, "prompt": calls.prompt, "computed": calls.computed, "cached": calls.cached}


def work(backend, name, rows, ended):
    """In a thread: the interpreter blocks."""
    try:
        ended.set_result(texts_of(backend, name, rows))
    except BaseException as error:
        ended.set_exception(error)


def texts_of(backend, name, rows):
    """All that the program generates for all rows.  What the rows share is bound, so that the interpreter finds a common prefix itself."""
    from sglang_programs import PROGRAMS

    if name not in PROGRAMS:
        raise ValueError(f"there is no program `{name}`")
    shared = {key: value for key, value in rows[0].items() if all(row[key] == value for row in rows)}
    own = [{key: value for key, value in row.items() if key not in shared} for row in rows]
    states = PROGRAMS[name].bind(**shared).run_batch(own, temperature=0.0, backend=backend)
    return [text for state in states for text in state.ret_value]


def runtime_backend(url, calls, never):
    """SGLang's own runtime.  never: a bias that keeps end tokens from being drawn where a program passes over them"""
    from sglang.lang.backend import runtime_endpoint

    plain = getattr(runtime_endpoint.http_request, "plain", runtime_endpoint.http_request)

    def http_request(address, json=None, **options):
        if json is not None and json.get("sampling_params", {}).get("ignore_eos"):
            json = {**json, "sampling_params": {**json["sampling_params"], "logit_bias": never}}
        answer = calls.watched(plain)(address, json=json, **options)
        if address.endswith("/generate"):
            if answer.status_code != 200:
                calls.fail(RuntimeError(answer.text))
            else:
                told = answer.json()["meta_info"]
                only_prefix = json["sampling_params"]["max_new_tokens"] == 0
                calls.count(None if only_prefix else written(told), told["prompt_tokens"], told.get("cached_tokens"))
        return answer

    # The endpoint has no place to look at its answers but the function of its module that it calls.
    http_request.plain = plain
    runtime_endpoint.http_request = http_request
    return runtime_endpoint.RuntimeEndpoint(url, chat_template_name="default")


def written(told):
    """Tokens that the runtime has generated, without the end token, which it counts."""
    return told["completion_tokens"] - isinstance(told["finish_reason"].get("matched"), int)


def openai_backend(url, calls):
    """A server with OpenAI's completions."""
    import tiktoken

    # It wants one of OpenAI's own tokenizers, which would be fetched; only choices and integers use it, and there are none here.
    tiktoken.encoding_for_model = lambda _: byte_encoding(tiktoken)
    from sglang.lang.backend.openai import OpenAI
    from sglang.lang.chat_template import get_chat_template

    backend = OpenAI("served", is_chat_model=False, chat_template=get_chat_template("default"), base_url=url + "/v1", api_key="none",
                     max_retries=0, timeout=600)
    create = calls.watched(backend.client.completions.create)

    def counted(**asked):
        answer = create(**asked)
        details = answer.usage.prompt_tokens_details
        calls.count(answer.usage.completion_tokens, answer.usage.prompt_tokens, None if details is None else details.cached_tokens)
        return answer

    backend.client.completions.create = counted
    return backend


def byte_encoding(tiktoken):
    return tiktoken.Encoding("bytes", pat_str=r"[\s\S]", mergeable_ranks={bytes([byte]): byte for byte in range(256)},
                             special_tokens={"<|endoftext|>": 256})
