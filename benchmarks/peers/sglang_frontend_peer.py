"""SGLang's frontend language on a server with OpenAI's interface: llama.cpp's, of the environment `llama` beside this one.

It runs programs and takes no requests.  The frontend passes no regex on to such servers, so there is no constrained text, and no
`ignore_eos`: the server is started so that it passes over end tokens for everybody.
"""

import importlib.metadata
import os
import sys
from pathlib import Path

from llama_peer import llama_server, slots, version
from peer_protocol import Engine, serve
from sglang_frontend import Frontend, openai_backend

# What the frontend cannot say to such a server, said to all of them.
FOR_ALL = ("--ignore-eos", "--top-k", "0", "--min-p", "0")


class SglangFrontend(Engine):
    async def open(self, job):
        # Its requests stay on this machine.
        os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
        folder = Path(sys.prefix).parent / "llama"
        if not (folder / "bin" / "llama-server").exists():
            raise RuntimeError(f"no llama-server in {folder / 'bin'}: make bench-peers PEERS=llama")
        self.server, context = llama_server(job, *FOR_ALL, environment=folder)
        await self.server.start()
        self.frontend = Frontend(lambda calls: openai_backend(f"http://127.0.0.1:{self.server.port}", calls))
        await self.frontend.load()
        return {"engine": f"SGLang {importlib.metadata.version('sglang')}'s frontend on llama.cpp {version(folder)}",
                "precision": job["dtype"], "can": ["programs"],
                "notes": [f"server with {slots(job)} slots and a unified cache of {context:,} tokens in float16, asked over its completions; "
                          "no regex"]}

    async def generate(self, ask):
        raise ValueError("this engine runs programs only")

    async def program(self, ask):
        if ask["name"] == "extract":
            raise ValueError("the frontend gives no regex to a server of this kind")
        return await self.frontend.run(ask["name"], ask["rows"])

    async def reset(self):
        # As with `llama`; the connections to the server that was are closed.
        self.server.stop()
        await self.server.start()
        await self.frontend.load()

    async def close(self):
        if hasattr(self, "server"):
            self.server.stop()


if __name__ == "__main__":
    serve(SglangFrontend())
