"""llama.cpp's server as a peer: parallel slots, one unified cache of keys and values, prompts as token ids over the loopback.

The server is started by this adapter on a free port, on a GGUF of the same weights (see `write_gguf.py`), which is kept beside the
virtual environment.  A regex becomes a grammar of its own language (`regex_grammar.py`).
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from kv_bytes import kv_bytes
from loopback_server import LoopbackServer, free_port
from peer_protocol import Engine, serve
from regex_grammar import grammar

# More slots than rows at a time only split the cache further.
MOST_SLOTS = 32


class Llama(Engine):
    async def open(self, job):
        self.server, context = llama_server(job)
        await self.server.start()
        return {"engine": f"llama.cpp {version()}", "precision": job["dtype"], "can": ["ids", "free", "ignore_eos", "regex", "schema", "seed", "stop"],
                "notes": [f"server with {slots(job)} slots and a unified cache of {context:,} tokens in float16, prompt cache on",
                          "regex through its grammar"]}

    async def generate(self, ask):
        body = {"prompt": ask["ids"], "n_predict": ask["max_tokens"], "temperature": ask.get("temperature", 0.0), "return_tokens": True,
                "top_p": ask.get("top_p", 1.0), "top_k": 0, "min_p": 0.0, "samplers": ["top_p", "temperature"], "cache_prompt": True,
                "ignore_eos": ask.get("ignore_eos", False), "stop": ask.get("stop", []), "seed": ask.get("seed", -1) or 0}
        if ask.get("regex"):
            body["grammar"] = grammar(ask["regex"])
        elif ask.get("schema"):
            body["json_schema"] = json.loads(ask["schema"])
        said = await self.server.call("POST", "/completion", body)
        finish = {"limit": "length", "eos": "eos", "word": "stop"}.get(said.get("stop_type"), "stop")
        times = said["timings"]
        cached = len(ask["ids"]) - times["prompt_n"]
        # The end token is among them.
        ids = said["tokens"][:-1] if finish == "eos" else said["tokens"]
        return {"ids": ids, "text": said["content"], "finish": finish, "computed": times["prompt_n"], "cached": cached}

    async def reset(self):
        # Slots can be emptied one by one, the prompts that it keeps in main memory cannot: the server begins anew, and reads the weights.
        self.server.stop()
        await self.server.start()
        await self.generate({"ids": [17, 18, 19, 20], "max_tokens": 1})

    async def close(self):
        if hasattr(self, "server"):
            self.server.stop()


def llama_server(job, *more, environment=Path(sys.prefix)):
    """The server for the job, not yet started, and how many tokens its cache holds.

    more: arguments of its command line; environment: where the server and its file of weights are
    """
    # Its cache is in float16.
    context, port = job["pool_bytes"] // kv_bytes(job["model"], 2), free_port()
    command = [server_program(environment), "--model", str(gguf_file(job, environment)), "--host", "127.0.0.1", "--port", str(port),
               "--parallel", str(slots(job)), "--ctx-size", str(context), "--kv-unified", "--threads", str(job["threads"]), "--threads-batch", str(job["threads"]),
               "--no-webui", "--slots", "--offline", *more]
    return LoopbackServer("llama-server", command, port), context


def slots(job):
    return min(job["parallel"], MOST_SLOTS)


def version(environment=Path(sys.prefix)):
    lines = subprocess.run([server_program(environment), "--version"], capture_output=True, text=True).stderr.strip().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("version:")), "of an unknown version")


def server_program(environment):
    """Of the environment, else on the path."""
    own = environment / "bin" / "llama-server"
    found = str(own) if own.exists() else shutil.which("llama-server")
    if found is None:
        raise RuntimeError(f"no llama-server in {own.parent} or on the path")
    return found


def gguf_file(job, environment):
    """The weights as the server reads them: as given, or written once for this model and precision."""
    if job.get("gguf"):
        return Path(job["gguf"])
    from write_gguf import write_gguf

    folder = Path(job["model"])
    target = environment / f"{folder.name}-{job['dtype']}.gguf"
    newest = max(path.stat().st_mtime for path in folder.iterdir())
    if not target.exists() or target.stat().st_mtime < newest:
        part = target.with_suffix(f".part-{os.getpid()}")
        write_gguf(folder, part, job["dtype"])
        part.replace(target)
    return target


if __name__ == "__main__":
    serve(Llama())
