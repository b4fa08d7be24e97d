"""The folder `editors/vscode`: its files fit one another and the language, and its grammar colours the examples.

The grammar is run by a small interpreter of TextMate grammars (line by line, the leftmost pattern, the first of equals).
"""

import json
from pathlib import Path

import pytest
import regex

from lmc.parser import words

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "editors" / "vscode"
GRAMMAR = json.loads((FOLDER / "syntaxes" / "lmp.tmLanguage.json").read_text(encoding="utf-8"))


def rules(node):
    """Every rule of the grammar."""
    if isinstance(node, dict):
        if "match" in node or "begin" in node:
            yield node
        for value in node.values():
            yield from rules(value)
    elif isinstance(node, list):
        for value in node:
            yield from rules(value)


def colours(text):
    """(piece, scopes) for each stretch of one set of scopes."""
    stack = [(None, GRAMMAR["patterns"])]
    found = []
    for line in text.split("\n"):
        at = 0
        while True:
            end, patterns = stack[-1]
            best = None
            for rule in ([{"end": end["end"]}] if end is not None else []) + flat(patterns):
                match = compiled(rule).search(line, at)
                if match and (best is None or match.start() < best[1].start()):
                    best = rule, match
            scopes = [s for e, _ in stack if e is not None and (s := e.get("name"))]
            if best is None:
                found.append((line[at:] + "\n", scopes))
                break
            rule, match = best
            found.append((line[at : match.start()], scopes))
            if "begin" in rule:
                found.append((match[0], scopes + [rule.get("name", "")]))
                stack.append((rule, rule.get("patterns", [])))
            elif "end" in rule:
                found.append((match[0], scopes))
                stack.pop()
            else:
                found += captured(match, rule, scopes)
            # An empty match that changes nothing would be found for ever.
            if match.end() == at and match.start() == at and "end" not in rule:
                raise AssertionError(f"empty match of {rule} in {line!r}")
            at = match.end()
    return [(piece, scopes) for piece, scopes in found if piece]


def captured(match, rule, scopes):
    own = scopes + [rule["name"]] if "name" in rule else scopes
    at = match.start()
    for number, capture in sorted(rule.get("captures", {}).items()):
        begin, end = match.span(int(number))
        if begin >= 0:
            yield match.string[at:begin], own
            yield match.string[begin:end], own + [capture["name"]]
            at = end
    yield match.string[at : match.end()], own


def compiled(rule):
    return regex.compile(rule.get("match") or rule.get("begin") or rule["end"])


def flat(patterns):
    found = []
    for rule in patterns:
        if "include" in rule:
            found += flat(GRAMMAR["repository"][rule["include"].removeprefix("#")]["patterns"])
        else:
            found.append(rule)
    return found


def scopes_of(text, piece):
    pieces = colours(text)
    assert "".join(p for p, _ in pieces) == text + "\n"
    at = text.index(piece)
    for found, scopes in pieces:
        at -= len(found)
        if at < 0:
            return " ".join(scopes)
    raise AssertionError(piece)


def test_files_are_there():
    package = json.loads((FOLDER / "package.json").read_text())
    json.loads((FOLDER / "language-configuration.json").read_text())
    (language,) = package["contributes"]["languages"]
    (grammar,) = package["contributes"]["grammars"]
    assert language["extensions"] == [".lmp"] and grammar["scopeName"] == GRAMMAR["scopeName"] == "source.lmp"
    for path in (package["main"], language["configuration"], grammar["path"]):
        assert (FOLDER / path).is_file(), path
    script = (FOLDER / package["main"]).read_text()
    (required,) = package["dependencies"]
    assert f'require("{required}/node")' in script and '"lsp"' in script
    assert package["contributes"]["configuration"]["properties"]["lmp.command"]["default"] == "lmc"
    assert not (FOLDER / "node_modules").exists()


def test_every_pattern_compiles_and_every_include_exists():
    found = list(rules(GRAMMAR))
    assert len(found) > 20
    for rule in found:
        for key in ("match", "begin", "end"):
            if key in rule:
                regex.compile(rule[key])
        assert ("begin" in rule) == ("end" in rule)
    flat(GRAMMAR["patterns"])
    for name, part in GRAMMAR["repository"].items():
        assert flat(part["patterns"]), name


def test_words_are_the_parsers():
    listed = {word for rule in rules(GRAMMAR) for word in regex.findall(r"[a-zA-Z_]+", rule.get("match", ""))
              if regex.search(r"\((?:\w+\|)+\w+\)|\(here\)", rule.get("match", ""))}
    reserved = words.KEYWORDS | words.ROLES | words.CONSTANTS | words.BUILTIN_TYPES | words.BUILTIN_FUNCTIONS | {"here"}
    assert listed - {"w", "s", "b"} == reserved


@pytest.mark.parametrize(
    "text, piece, scope",
    [
        ('user: "a # b"', "# b", "string.quoted.double.lmp"),
        ('user: "a" # b', "# b", "comment.line.number-sign.lmp"),
        ('x = "${f("a # }") } end"', "# }", "string.quoted.double.lmp meta.embedded.line.lmp string.quoted.double.lmp"),
        ('x = "${f("a # }") } end"', " end", "string.quoted.double.lmp"),
        ('x = "${f({a: 1})} end"', " end", "string.quoted.double.lmp"),
        ('x = "${# no } end"', "no", "string.quoted.double.lmp comment.block.hole.lmp"),
        ('x = """\n  # t ${n}\n  """\ny = 1', "# t", "string.quoted.triple.lmp"),
        ('x = """\n  # t ${n}\n  """\ny = 1', "n}", "string.quoted.triple.lmp meta.embedded.line.lmp variable.other.lmp"),
        ('x = """\n  # t ${n}\n  """\ny = 1', "1", "constant.numeric.integer.lmp"),
        ('x = r"\\d ${x}" + y', "${x", "string.quoted.double.raw.lmp"),
        ('x = "not closed\ny = 1', "1", "constant.numeric.integer.lmp"),
        ('x = "a\\"b" # c', "# c", "comment.line.number-sign.lmp"),
        ("def judge(x: 1..5) -> str:", "judge", "entity.name.function.lmp"),
        ("def judge(x: str = None):", "str", "support.type.lmp"),
        ("type Note:", "Note", "entity.name.type.lmp"),
        ("    user: x", "user", "keyword.control.role.lmp"),
        ("gen(schema=S)", "schema", "variable.parameter.lmp"),
        ("x.join", "join", "variable.other.member.lmp"),
    ],
)
def test_scopes(text, piece, scope):
    assert scopes_of(text, piece) == scope


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.lmp")), ids=lambda p: p.name)
def test_examples_end_outside_every_string(path):
    pieces = colours(path.read_text(encoding="utf-8") + "end_mark")
    assert pieces[-2:] == [("end_mark", ["variable.other.lmp"]), ("\n", [])]
    assert any("meta.embedded.line.lmp" in scopes for _, scopes in pieces)
