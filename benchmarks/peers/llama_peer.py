"""llama.cpp's server as a peer: parallel slots, one unified cache of keys and values, prompts as token ids over the loopback.

The server is started by this adapter on a free port, on a GGUF of the same weights (see `write_gguf.py`), which is kept beside the
virtual environment.  A regex becomes a grammar of its own language (`regex_grammar.py`).
"""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

from peer_protocol import Engine, serve
from regex_grammar import grammar

# More slots than rows at a time only split the cache further.
MOST_SLOTS = 32
# Seconds for reading the weights.
START = 300


class Llama(Engine):
    async def open(self, job):
        program = server_program()
        model = gguf_file(job)
        self.slots = min(job["parallel"], MOST_SLOTS)
        context = job["pool_bytes"] // slot_bytes(job["model"])
        self.port = free_port()
        self.command = [program, "--model", str(model), "--host", "127.0.0.1", "--port", str(self.port), "--parallel", str(self.slots),
                        "--ctx-size", str(context), "--kv-unified", "--threads", str(job["threads"]), "--threads-batch", str(job["threads"]),
                        "--no-webui", "--slots", "--offline"]
        await self.start()
        version = subprocess.run([program, "--version"], capture_output=True, text=True).stderr.strip().splitlines()
        number = next((line.split(":", 1)[1].strip() for line in version if line.startswith("version:")), "of an unknown version")
        return {"engine": f"llama.cpp {number}", "precision": job["dtype"], "can": ["ids", "regex", "schema", "seed", "stop"],
                "notes": [f"server with {self.slots} slots and a unified cache of {context:,} tokens in float16, prompt cache on",
                          "regex through its grammar"]}

    async def start(self):
        self.process = subprocess.Popen(self.command, stdout=2, stderr=2, stdin=subprocess.DEVNULL)
        await self.healthy()

    async def healthy(self):
        for _ in range(START * 10):
            if self.process.poll() is not None:
                raise RuntimeError(f"llama-server ended with exit code {self.process.returncode}")
            try:
                await self.call("GET", "/health")
                return
            except (OSError, RuntimeError):
                await asyncio.sleep(0.1)
        raise RuntimeError(f"llama-server was not ready after {START} seconds")

    async def generate(self, ask):
        body = {"prompt": ask["ids"], "n_predict": ask["max_tokens"], "temperature": ask.get("temperature", 0.0), "return_tokens": True,
                "top_p": ask.get("top_p", 1.0), "top_k": 0, "min_p": 0.0, "samplers": ["top_p", "temperature"], "cache_prompt": True,
                "ignore_eos": ask.get("ignore_eos", False), "stop": ask.get("stop", []), "seed": ask.get("seed", -1) or 0}
        if ask.get("regex"):
            body["grammar"] = grammar(ask["regex"])
        elif ask.get("schema"):
            body["json_schema"] = json.loads(ask["schema"])
        said = await self.call("POST", "/completion", body)
        finish = {"limit": "length", "eos": "eos", "word": "stop"}.get(said.get("stop_type"), "stop")
        times = said["timings"]
        cached = len(ask["ids"]) - times["prompt_n"]
        # The end token is among them.
        ids = said["tokens"][:-1] if finish == "eos" else said["tokens"]
        return {"ids": ids, "text": said["content"], "finish": finish, "computed": times["prompt_n"], "cached": cached}

    async def reset(self):
        # Slots can be emptied one by one, the prompts that it keeps in main memory cannot: the server begins anew, and reads the weights.
        await self.close()
        await self.start()
        await self.generate({"ids": [17, 18, 19, 20], "max_tokens": 1})

    async def close(self):
        if getattr(self, "process", None) is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()

    async def call(self, method, path, body=None):
        """One request on a connection of its own; the answer's JSON.  Cancelling it closes the connection, and the server stops."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 26)
        try:
            data = b"" if body is None else json.dumps(body).encode()
            writer.write(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n"
                         f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.decode().lower().split("\r\n")
            length = next((int(line.split(":")[1]) for line in lines if line.startswith("content-length:")), None)
            answer = await (reader.read() if length is None else reader.readexactly(length))
            if int(lines[0].split()[1]) != 200:
                raise RuntimeError(f"llama-server answers {lines[0].split(' ', 1)[1]}: {answer[:500].decode(errors='replace')}")
            return json.loads(answer)
        finally:
            writer.close()


def server_program():
    """Beside this Python, else on the path."""
    own = Path(sys.prefix) / "bin" / "llama-server"
    found = str(own) if own.exists() else shutil.which("llama-server")
    if found is None:
        raise RuntimeError(f"no llama-server in {own.parent} or on the path")
    return found


def gguf_file(job):
    """The weights as the server reads them: as given, or written once for this model and precision."""
    if job.get("gguf"):
        return Path(job["gguf"])
    from write_gguf import write_gguf

    folder = Path(job["model"])
    target = Path(sys.prefix) / f"{folder.name}-{job['dtype']}.gguf"
    newest = max(path.stat().st_mtime for path in folder.iterdir())
    if not target.exists() or target.stat().st_mtime < newest:
        part = target.with_suffix(f".part-{os.getpid()}")
        write_gguf(folder, part, job["dtype"])
        part.replace(target)
    return target


def slot_bytes(model):
    """Bytes of keys and values of a token in float16."""
    config = json.loads((Path(model) / "config.json").read_text())
    width = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    return 2 * 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * width


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


if __name__ == "__main__":
    serve(Llama())
