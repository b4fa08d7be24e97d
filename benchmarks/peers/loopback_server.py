"""A server that an adapter starts on this machine and asks over the loopback: JSON in, JSON out, each request on a connection of its own.

    server = LoopbackServer("llama-server", ["llama-server", "--port", str(port)], port)
    await server.start()            # until GET /health answers
    await server.call("POST", "/completion", {"prompt": [1, 42]})
    server.stop()
"""

import asyncio
import json
import signal
import socket
import subprocess

# Seconds for reading the weights, and for ending.
START, END = 300, 10
# An answer with the log-probabilities of a long prompt is long.
_LONGEST = 1 << 26


class LoopbackServer:
    """name: for messages; command: what is started, which listens on `port`; environment: its variables, this process's own if None"""

    def __init__(self, name, command, port, *, environment=None, health="/health", start=START):
        self.name, self.command, self.port, self.environment = name, command, port, environment
        self.health, self.seconds = health, start
        self.process = None

    async def start(self):
        """Raises `RuntimeError` where it ends or answers nothing."""
        self.process = subprocess.Popen(self.command, stdout=2, stderr=2, stdin=subprocess.DEVNULL, env=self.environment)
        for _ in range(self.seconds * 10):
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with exit code {self.process.returncode}")
            try:
                await self.call("GET", self.health)
                return
            except (OSError, RuntimeError, asyncio.IncompleteReadError):
                await asyncio.sleep(0.1)
        raise RuntimeError(f"{self.name} was not ready after {self.seconds} seconds")

    async def call(self, method, path, body=None):
        """The answer's JSON, or its text where it is none; cancelling it closes the connection, and the server gives the request up."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=_LONGEST)
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
                raise RuntimeError(f"{self.name} answers {lines[0].split(' ', 1)[1]}: {answer[:500].decode(errors='replace')}")
            return parsed(answer)
        finally:
            writer.close()

    def stop(self):
        """End it, by force where it does not end by itself; called again it does nothing."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def parsed(answer):
    try:
        return json.loads(answer)
    except ValueError:
        return answer.decode(errors="replace")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
