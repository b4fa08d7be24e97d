"""SGLang's own runtime on the processor as a peer: its radix cache, prompts as token ids over the loopback, and its frontend's programs.

The server is started by this adapter on a free port.  Attention is torch's: its fast kernels for processors need AMX, and are not there.
"""

import asyncio
import importlib.metadata
import os
import sys

from end_tokens import end_tokens, never
from kv_bytes import kv_bytes
from loopback_server import LoopbackServer, free_port
from peer_protocol import Engine, serve
from sglang_frontend import Frontend, runtime_backend

# Seconds for importing everything and reading the weights, on a busy machine.
START = 900
NUMBER_BYTES = {"float32": 4, "bfloat16": 2}


class Sglang(Engine):
    async def open(self, job):
        os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
        # Those that were asked for.
        self.constraints, self.never = set(), never(end_tokens(job["model"]))
        port, tokens = free_port(), job["pool_bytes"] // kv_bytes(job["model"], NUMBER_BYTES[job["dtype"]])
        self.server = LoopbackServer("SGLang's server", command(job, port, tokens), port, environment=environment(job), start=START)
        await self.server.start()
        self.frontend = Frontend(lambda calls: runtime_backend(f"http://127.0.0.1:{port}", calls, self.never))
        await self.frontend.load()
        return {"engine": f"SGLang {importlib.metadata.version('sglang')}", "precision": job["dtype"],
                "can": ["ids", "free", "ignore_eos", "regex", "schema", "stop", "score", "programs"],
                "notes": [f"server with torch's own attention and a radix cache of {tokens:,} tokens", "no seeds",
                          "log-probabilities of prompts pass the cache by from where they begin"]}

    async def generate(self, ask):
        settings = {"max_new_tokens": ask["max_tokens"], "temperature": ask.get("temperature", 0.0), "top_p": ask.get("top_p", 1.0),
                    "stop": ask.get("stop") or None, "logit_bias": self.never if ask.get("ignore_eos") else None}
        if ask.get("regex"):
            settings["regex"] = ask["regex"]
            self.constraints.add(("regex", ask["regex"]))
        elif ask.get("schema"):
            settings["json_schema"] = ask["schema"]
            self.constraints.add(("json_schema", ask["schema"]))
        said = await self.server.call("POST", "/generate", {"input_ids": ask["ids"], "sampling_params": settings})
        told = said["meta_info"]
        reason = told["finish_reason"]
        if reason["type"] == "abort":
            raise RuntimeError(reason.get("message", "the request was given up"))
        ids = list(said["output_ids"])
        matched = reason.get("matched")
        finish = "length" if reason["type"] == "length" else "eos" if isinstance(matched, int) else "stop"
        if finish == "eos" and ids and ids[-1] == matched:
            ids.pop()
        return {"ids": ids, "text": said["text"], "finish": finish, **prompt_tokens(told)}

    async def score(self, ask):
        body = {"input_ids": ask["ids"], "sampling_params": {"max_new_tokens": 0, "temperature": 0.0}, "return_logprob": True,
                # The log-probability of a token comes from the row before it.
                "logprob_start_len": max(ask["start"] - 1, 0)}
        told = (await self.server.call("POST", "/generate", body))["meta_info"]
        wanted = ask["ids"][ask["start"] :]
        found = told["input_token_logprobs"][-len(wanted) :]
        assert [token for _, token, _ in found] == wanted, "log-probabilities of other tokens"
        return {"logprobs": [logprob for logprob, _, _ in found], **prompt_tokens(told)}

    async def program(self, ask):
        if ask["name"] == "extract":
            self.constraints.add(("regex", self.frontend.regex()))
        return await self.frontend.run(ask["name"], ask["rows"])

    async def reset(self):
        await self.server.call("POST", "/flush_cache")
        # Its compiled grammars went, too; other engines keep theirs.
        for kind, text in self.constraints:
            await self.server.call("POST", "/generate", {"input_ids": [17], "sampling_params": {"max_new_tokens": 1, kind: text}})

    async def close(self):
        if hasattr(self, "server"):
            await asyncio.to_thread(self.server.stop)


def command(job, port, tokens):
    return [sys.executable, "-s", "-m", "sglang.launch_server", "--model-path", job["model"], "--host", "127.0.0.1", "--port", str(port),
            "--device", "cpu", "--dtype", job["dtype"], "--attention-backend", "torch_native", "--sampling-backend", "pytorch",
            "--disable-overlap-schedule", "--max-total-tokens", str(tokens), "--max-running-requests", str(job["parallel"]),
            "--skip-server-warmup", "--log-level", "warning",
            # It is stopped while others have their turn.
            "--watchdog-timeout", "100000"]


def environment(job):
    return {**os.environ, "SGLANG_USE_CPU_ENGINE": "1", "OMP_NUM_THREADS": str(job["threads"]), "HF_HUB_OFFLINE": "1"}


def prompt_tokens(told):
    return {"computed": told["prompt_tokens"] - told["cached_tokens"], "cached": told["cached_tokens"]}


if __name__ == "__main__":
    serve(Sglang())
