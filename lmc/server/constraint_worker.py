"""The process in which a constraint that a request brings becomes an automaton: all that a hostile one can take with it.

    <- length, {"kind": "regex", "source": "a|b"}          4 bytes little-endian, JSON
    -> length, {"constraint": {"source": "a|b", "states": 3, …}}
    -> length, {"code": "E0601", "message": "this regex cannot be used: …", "help": "…"}

It reads one job after the other from standard input and ends with it.  Each job may take so much processor time, all together so
much memory; what goes over that ends the process, and who asked sees it end.  Answers are data, checked by who reads them.
`constraint_process.py` is the other side; this file knows no model, no tokens and no network.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO

from lmc.backend.dfa_data import constraint_to_data
from lmc.regex.build import compile_regex
from lmc.regex.dfa import ByteDfa
from lmc.regex.grammar import LARK, Grammar, GrammarError, check_grammar
from lmc.regex.parse import RegexError
from lmc.regex.schema import schema_constraint
from lmc.regex.schema_keywords import SchemaError, shown, subschemas, under

#: Processor seconds for a grammar, which is read again in the server's own process.
_GRAMMAR_SECONDS = 0.2
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def main() -> None:
    """Arguments: processor seconds of a job, bytes of memory, bytes of an automaton's table."""
    seconds, memory, table = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    jobs, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not be taken for an answer
    os.nice(10)  # who waits for the model goes first
    compile_regex("[a-z]+")  # what is imported late is here before the limit holds
    limit_memory(memory)
    while (job := read_message(jobs)) is not None:
        signal.setitimer(signal.ITIMER_PROF, seconds)  # ends the process, in native code too
        answer = answer_to(json.loads(job), table)
        signal.setitimer(signal.ITIMER_PROF, 0)
        write_message(answers, json.dumps(answer).encode())


def limit_memory(more: int) -> None:
    """Let the process have `more` bytes beside what it has now, where the system can say how much that is."""
    import resource

    own = Path("/proc/self/statm")
    if own.exists():
        now = int(own.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + more, now + more))


def read_message(stream: BinaryIO) -> bytes | None:
    """The next message; None at the end of the stream, also in the middle of one."""
    head = stream.read(4)
    size = int.from_bytes(head, "little")
    data = stream.read(size)
    return data if len(head) == 4 and len(data) == size else None


def write_message(stream: BinaryIO, data: bytes) -> None:
    stream.write(len(data).to_bytes(4, "little") + data)
    stream.flush()


def answer_to(job: dict[str, Any], table: int) -> dict[str, Any]:
    """The constraint as data, or why there is none; `table`: the most bytes of an automaton's table."""
    kind, source = job["kind"], job["source"]
    try:
        built = build_constraint(kind, source)
    except RegexError as error:
        return _refusal(kind, error)
    except (MemoryError, RecursionError):
        return {"code": "E0610", "message": f"this {kind} needs more memory than a request may use", "help": "simplify it"}
    if isinstance(built, ByteDfa) and built.table.nbytes > table:
        message = f"the automaton of this {kind} has {built.table.nbytes:,} bytes, a request may use {table:,}"
        return {"code": "E0610", "message": message, "help": "lower the counts in it"}
    return {"constraint": constraint_to_data(built)}


def build_constraint(kind: str, source: str) -> ByteDfa | Grammar:
    """kind: `regex`, `schema` (JSON text) or `grammar` (Lark).  Raises `RegexError`."""
    if kind == "regex":
        return compile_regex(source)
    if kind == "schema":
        check_references(source)
        built = schema_constraint(source)
    else:
        built = Grammar(LARK, source)
        check_grammar(built)
    if isinstance(built, Grammar):
        _check_time(built)
    return built


def check_references(source: str) -> None:
    """Raises `SchemaError` where the schema refers to anything outside itself: nothing is ever fetched for a request."""
    try:
        document = json.loads(source)
        for schema, path in subschemas(document, ""):
            own = str(document.get("$id", "")).rstrip("#") + "#"
            for name in _REFERENCES:
                target = schema.get(name)
                if isinstance(target, str) and not target.startswith("#") and not (len(own) > 1 and (target + "#").startswith(own)):
                    message = f"only references inside the document are followed, found {shown(target)}"
                    raise SchemaError(under(path, name), message)
    except json.JSONDecodeError as error:
        raise SchemaError("", f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise SchemaError("", "the schema is nested too deeply") from None


def _check_time(grammar: Grammar) -> None:
    began = time.process_time()
    check_grammar(grammar)
    if time.process_time() - began > _GRAMMAR_SECONDS:
        raise GrammarError(f"reading the grammar takes more than {_GRAMMAR_SECONDS} seconds; simplify it", 0)


def _refusal(kind: str, error: RegexError) -> dict[str, Any]:
    place = f", at character {error.position + 1} of it" if error.position and kind == "regex" else ""
    code, help = {
        "regex": ("E0601", "regexes are Python's without look-around and back-references, and match the whole text"),
        "schema": ("E0605", "docs/constraints.md lists what a schema may hold"),
        "grammar": ("E0606", "grammars are written in Lark's syntax, see docs/constraints.md"),
    }[kind]
    return {"code": code, "message": f"this {kind} cannot be used: {error.message}{place}", "help": help}
