"""`lmc schema f.lmp[:entry]`: the JSON Schema of each public function's signature, as `m.judge.schema` in Python.

    lmc schema judge.lmp            {"judge": {"description": …, "parameters": …, "returns": …}, …}
    lmc schema judge.lmp:judge      {"description": …, "parameters": …, "returns": …}

Functions that take or return a context have none: they are left out, or an error where one is asked for by name.
"""

from __future__ import annotations

import json

import click

from lmc.cli.exits import OK
from lmc.cli.roots import with_roots
from lmc.cli.program_command import file_and_entry


@with_roots
@click.command("schema")
@click.argument("file", metavar="FILE[:FUNCTION]")
def schema(file: str, roots: tuple[str, ...]) -> int:
    """Print the JSON Schema of a program's functions."""
    from lmc.embed import function_schema, load_program
    from lmc.runtime.arguments import find_entry
    from lmc.runtime.host_types import holds_context

    path, entry = file_and_entry(file)
    program = load_program(path, roots=roots)
    if entry is not None:
        found = function_schema(find_entry(program, entry))
    else:
        codes = [program.functions[name] for name in program.entries]
        found = {c.name: function_schema(c) for c in codes if not any(map(holds_context, (c.result, *(p.type for p in c.params))))}
    click.echo(json.dumps(found, ensure_ascii=False, indent=2))
    return OK
