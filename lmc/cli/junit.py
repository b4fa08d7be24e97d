"""Results of tests as JUnit XML, as build servers read it.

    <testsuites tests="2" failures="1" …>
      <testsuite name="vote.lmp" …>
        <testcase classname="vote.lmp" name="two plus two" file="vote.lmp" line="20" time="3.100">
          <failure type="E0832" message="assertion failed">error[E0832]: …  --> vote.lmp:21:5 …</failure>

A test that could not begin (its cassette is missing or damaged) is an `<error>`.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmc.diagnostics import Diagnostic, RunError, UsageError

if TYPE_CHECKING:
    from lmc.backend.program import Program
    from lmc.cli.test_runs import TestResult


def write_junit(path: Path, program: Program, results: Sequence[TestResult]) -> None:
    """Write the file.  Raises `UsageError` where it cannot be written."""
    try:
        path.write_bytes(junit_xml(program.name, results))
    except OSError as error:
        raise UsageError(Diagnostic("E0853", f"`{path}` cannot be written: {error.strerror}", None)) from None


def junit_xml(name: str, results: Sequence[TestResult]) -> bytes:
    """The XML document."""
    failures = sum(isinstance(r.error, RunError) for r in results)
    errors = sum(r.error is not None for r in results) - failures
    counts = {"tests": str(len(results)), "failures": str(failures), "errors": str(errors), "skipped": "0",
              "time": _seconds(sum(r.report.seconds for r in results))}
    root = xml.Element("testsuites", counts)
    suite = xml.SubElement(root, "testsuite", {"name": _legal(name), **counts})
    for result in results:
        _add_case(suite, name, result)
    xml.indent(root)
    return xml.tostring(root, encoding="utf-8", xml_declaration=True)


def _add_case(suite: xml.Element, name: str, result: TestResult) -> None:
    place = {} if result.span is None else {"file": _legal(result.span.file), "line": str(result.span.line)}
    case = xml.SubElement(suite, "testcase", {"classname": _legal(name), "name": _legal(result.title), **place,
                                              "time": _seconds(result.report.seconds)})
    if result.error is not None:
        first = result.error.diagnostics[0]
        kind = "failure" if isinstance(result.error, RunError) else "error"
        xml.SubElement(case, kind, {"type": first.code, "message": _legal(first.message)}).text = _legal(str(result.error))
    if result.printed:
        xml.SubElement(case, "system-out").text = _legal(result.printed)


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}"


# What XML 1.0 cannot hold, not even escaped.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _legal(text: str) -> str:
    return _ILLEGAL.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)
