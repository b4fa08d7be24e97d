"""Diagnostics for other programs: JSON lines, and SARIF 2.1.0 (the format that code hosts and editors read).

    {"code":"E0201","severity":"error","message":"undefined name `revew`","file":"classify.lmp","line":18,"column":22, …}

The same objects that `lmc.diagnostics.render` shows to people; nothing is found or left out here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from lmc.codes import CODES
from lmc.diagnostics import Diagnostic, in_order


def as_json_lines(diagnostics: Iterable[Diagnostic]) -> str:
    """One JSON object a line, in order of place.  Lines and columns count from 1, in characters; the end is exclusive."""
    return "".join(json.dumps(_object(d), ensure_ascii=False, separators=(",", ":")) + "\n" for d in in_order(diagnostics))


def as_sarif(diagnostics: Iterable[Diagnostic], version: str) -> str:
    """One SARIF log with one run.  `version` is that of `lmc`."""
    ordered = in_order(diagnostics)
    codes = sorted({d.code for d in ordered})
    driver = {"name": "lmc", "version": version, "rules": [_rule(code) for code in codes]}
    run = {
        "tool": {"driver": driver},
        # Python strings and so our columns count code points; SARIF's default is UTF-16.
        "columnKind": "unicodeCodePoints",
        "results": [_result(d, codes.index(d.code)) for d in ordered],
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(log, ensure_ascii=False, indent=2) + "\n"


def _object(diagnostic: Diagnostic) -> dict[str, Any]:
    span = diagnostic.span
    place = {} if span is None else {
        "file": span.file, "line": span.line, "column": span.column, "end_line": span.end_line, "end_column": span.end_column,
    }
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        **place,
        "label": diagnostic.label,
        "help": diagnostic.help,
        "notes": list(diagnostic.notes),
    }


def _rule(code: str) -> dict[str, Any]:
    return {"id": code, "shortDescription": {"text": CODES[code]}, "help": {"text": f"lmc explain {code}"}}


def _result(diagnostic: Diagnostic, rule: int) -> dict[str, Any]:
    text = diagnostic.message + (f"\nhelp: {diagnostic.help}" if diagnostic.help else "")
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": diagnostic.severity.value,
        "message": {"text": text},
    }
    span = diagnostic.span
    if span is not None:
        region = {"startLine": span.line, "startColumn": span.column, "endLine": span.end_line, "endColumn": span.end_column}
        location = {"artifactLocation": {"uri": _uri(span.file)}, "region": region}
        result["locations"] = [{"physicalLocation": location}]
    return result


def _uri(path: str) -> str:
    from pathlib import Path
    from urllib.parse import quote

    file = Path(path)
    return file.as_uri() if file.is_absolute() else quote(file.as_posix())
