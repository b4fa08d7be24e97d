"""`lmc bench json`: typed objects with and without jump-forward: passes, seconds, and whether the texts are those of plain masking.

    object     documents  batch  jump       passes   of off   seconds  of off   same tokens
    character         40      1  off         6,640             312.4
    character         40      1  exact       1,290     0.19     98.0    0.31    40 of 40
    character         40      1  canonical   1,580     0.24    104.3    0.33    1 of 40

Three kinds of objects: the two regexes of SGLang's JSON benchmark (a character of Harry Potter by name, a city from an encyclopedia's
page; each page gives two documents), and examples of public JSON schemas: of the 40 real ones those that compile, and after these of
the public benchmark's.  Each run has an engine of its own, so its memo is empty at the start; of several rounds, in which the three
take turns, the medians are printed.  Where tokens differ, the two that first did are looked at again: closer than `_NEAR` they are a near-tie, which the last
bits of float32 decide, and listed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from lmc.diagnostics import Diagnostic, UsageError

if TYPE_CHECKING:
    from lmc.runtime.engine import Engine
    from lmc.runtime.request import Generated, GenerateRequest

OBJECTS = ("character", "city", "schemas")
JUMPS = ("off", "exact", "canonical")
_MAX_TOKENS = 300
_MORE_SCHEMAS = "constraints/jsonschemabench_permissive.jsonl"
# Characters of a page that one document has.
_PIECE = 1000
# Logits that differ by less are a tie as far as float32 goes.
_NEAR = 1e-4
_HEAD = f"{'object':12}{'documents':>10}{'batch':>7}  {'jump':11}{'passes':>8}{'of off':>9}{'seconds':>10}{'of off':>9}{'cpu s':>9}   same tokens"


@dataclass(frozen=True, slots=True)
class Document:
    """What is asked, and the regex or JSON schema of the answer."""

    question: str
    regex: str | None
    schema: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results by document (None where the request was refused), forward passes, wall and processor seconds."""

    results: tuple[Generated | None, ...]
    passes: int
    seconds: float
    processor: float


class Bench:
    """A model, and the runs on it.  `dry`: the stand-in model, for trying out; `kernels`: as for `load_model`."""

    def __init__(self, model: str, *, dry: bool = False, kernels: str = "auto"):
        from lmc.embed import cache_folder
        from lmc.runtime.constraint import TokenIndex
        from lmc.runtime.context import Prompter
        from lmc.runtime.open_tokenizer import open_tokenizer

        self._model, self._dry, self._kernels, self._cache = model, dry, kernels, cache_folder()
        self._tokenizer, template = open_tokenizer(model, self._cache, dry=dry)
        self._prompter = Prompter(self._tokenizer, template)
        self._index = TokenIndex(self._tokenizer.token_bytes)
        self._constraints: dict[tuple[str | None, str | None], Any] = {}

    def table(self, objects: dict[str, list[Document]], batches: tuple[int, ...], rounds: int = 1) -> Iterator[str]:
        yield _HEAD
        for name, documents in objects.items():
            requests = [self._request(document) for document in documents]
            for batch in batches:
                turns = [{jump: self._run(requests, batch, jump) for jump in JUMPS} for _ in range(rounds)]
                outcomes = {jump: _median([turn[jump] for turn in turns]) for jump in JUMPS}
                for jump, outcome in outcomes.items():
                    yield _line(name, batch, jump, outcome, outcomes["off"])
                    yield from self._differences(requests, outcome, outcomes["off"]) if jump == "exact" else ()

    def _request(self, document: Document) -> GenerateRequest:
        from lmc.regex.grammar import Grammar
        from lmc.runtime.constraint import TokenConstraint
        from lmc.runtime.grammar import GrammarConstraint
        from lmc.runtime.request import GenerateRequest

        key = (document.regex, document.schema)
        if key not in self._constraints:
            automaton = _automaton(document)
            if isinstance(automaton, Grammar):
                self._constraints[key] = GrammarConstraint(automaton, self._tokenizer.token_bytes)
            else:
                self._constraints[key] = TokenConstraint(automaton, self._index)
        context = self._prompter.append(self._prompter.new(), "user", document.question)
        prompt = self._prompter.prompt(context, "assistant", heal=True)
        return GenerateRequest(prompt.ids, _MAX_TOKENS, heal=prompt.heal, constraint=self._constraints[key])

    def _engine(self, jump: str) -> Engine:
        from lmc.runtime.dry import DryModel
        from lmc.runtime.engine import Engine
        from lmc.runtime.model.load import load_model
        from lmc.runtime.model.registry import resolve_model

        if self._dry:
            return Engine(DryModel(self._tokenizer), self._tokenizer, slots=1 << 16, jump=jump)
        model = load_model(resolve_model(self._model, self._cache), kernels=self._kernels, cache=self._cache)
        return Engine(model, self._tokenizer, slots=1 << 15, jump=jump)

    def _run(self, requests: list[GenerateRequest], batch: int, jump: str) -> Outcome:
        """At most `batch` requests at a time; the next one comes when one is over."""
        engine = self._engine(jump)
        waiting = list(enumerate(requests))[::-1]
        results: list[Generated | None] = [None] * len(requests)
        places: dict[int, int] = {}
        started, processor = time.perf_counter(), time.process_time()
        while waiting or engine.busy:
            while waiting and len(places) < batch:
                place, request = waiting.pop()
                places[engine.submit(request)] = place
            for event in engine.step():
                place = places.pop(event.ticket)
                results[place] = getattr(event, "result", None)
        return Outcome(tuple(results), engine.stats.steps, time.perf_counter() - started, time.process_time() - processor)

    def _differences(self, requests: list[GenerateRequest], outcome: Outcome, off: Outcome) -> Iterator[str]:
        """A line for each document whose tokens differ from those of plain masking: where, and how near the two were."""
        for number, (request, one, other) in enumerate(zip(requests, outcome.results, off.results)):
            if one is None or other is None or one.ids == other.ids:
                continue
            place = next((i for i, pair in enumerate(zip(one.ids, other.ids)) if pair[0] != pair[1]), None)
            if place is None:
                yield f"    document {number + 1}: one answer goes on where the other ends"
                continue
            common = (*request.prompt, *one.ids[:place])
            gap = abs(self._logprob(common, one.ids[place]) - self._logprob(common, other.ids[place]))
            kind = "a near-tie" if gap < _NEAR else "NOT a near-tie"
            yield f"    document {number + 1}, token {place + 1}: the logits differ by {gap:.1e}, {kind}"

    def _logprob(self, ids: tuple[int, ...], token: int) -> float:
        from lmc.runtime.request import ScoreRequest

        engine = self._engine("off")
        engine.submit(ScoreRequest((*ids, token), len(ids)))
        events = []
        while engine.busy:
            events += engine.step()
        return events[0].result.logprobs[0]


def _median(outcomes: list[Outcome]) -> Outcome:
    """The results of the first, with the medians of the times.  Raises `AssertionError` where two runs gave other tokens."""
    tokens = {tuple(result and result.ids for result in outcome.results) for outcome in outcomes}
    assert len(tokens) == 1, "equal runs gave other tokens"
    return replace(outcomes[0], seconds=median(outcome.seconds for outcome in outcomes),
                   processor=median(outcome.processor for outcome in outcomes))


def repository() -> Path:
    """The repository that the current folder is in; the folder itself where it is in none."""
    here = Path.cwd()
    return next((place for place in (here, *here.parents) if (place / ".git").exists()), here)


def read_documents(folder: Path | None, names: tuple[str, ...], count: int) -> dict[str, list[Document]]:
    """`count` documents of each kind.  Raises `UsageError` where the data are missing.

    folder: with the files of the shared test data; by default `../shared/data` beside the repository that the current folder is in
    """
    folder = folder or repository().parent / "shared" / "data"
    made = {"character": _characters, "city": _cities, "schemas": _schemas}
    return {name: list(islice(made[name](folder), count)) for name in names}


def read_rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines in a folder of benchmark data.  Raises `UsageError` where it is missing or something else."""
    path = folder / name
    if not path.is_file():
        raise UsageError(Diagnostic("E0853", f"`{path}` does not exist, expected the data of the benchmark", None,
                                    help="give the folder of the shared test data: --data FOLDER"))
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line.strip():
            rows.append(_object(line, f"line {number} of `{path}`"))
    return rows


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise UsageError(Diagnostic("E0853", f"{where} is no JSON: {error}", None)) from None
    if not isinstance(row, dict):
        raise UsageError(Diagnostic("E0853", f"{where} is no JSON object, expected a row of the data", None))
    return row


def _characters(folder: Path) -> Iterator[Document]:
    regex = _regex(folder, "character")
    question = "{} is a character in Harry Potter. Please fill in the following information about this character."
    return (Document(question.format(row["name"]), regex, None) for row in read_rows(folder, "character_names.jsonl"))


def _cities(folder: Path) -> Iterator[Document]:
    regex = _regex(folder, "city")
    question = "Please extract the information of a city from the following page.\n{}\nHere are the name, country, latitude, population " \
               "and top 3 landmarks in JSON."
    pages = [row["document"] for row in read_rows(folder, "wiki_docs.jsonl")]
    return (Document(question.format(page[start : start + _PIECE]), regex, None) for start in (0, _PIECE) for page in pages)


def _schemas(folder: Path) -> Iterator[Document]:
    """Those that compile; what does not is counted by the tests of the corpora."""
    from lmc.regex.json_schema import SchemaError

    rows = read_rows(folder, "json_schemas.jsonl")
    if (folder / _MORE_SCHEMAS).is_file():
        rows += read_rows(folder, _MORE_SCHEMAS)
    for row in rows:
        document = Document(f"Write an example of this JSON: {row.get('title') or row['id']}.", None, json.dumps(row["schema"]))
        with suppress(SchemaError):
            _automaton(document)
            yield document


def _automaton(document: Document) -> Any:
    from lmc.regex.build import compile_regex
    from lmc.regex.schema import schema_constraint

    return compile_regex(document.regex) if document.regex is not None else schema_constraint(document.schema)


def _regex(folder: Path, name: str) -> str:
    return next(row["regex"] for row in read_rows(folder, "regex_constraints.jsonl") if row["id"] == name)


def _line(name: str, batch: int, jump: str, outcome: Outcome, off: Outcome) -> str:
    line = f"{name:12}{len(outcome.results):10}{batch:7}  {jump:11}{outcome.passes:8,}"
    if outcome is off:
        refused = sum(result is None for result in off.results)
        return f"{line}{'':9}{outcome.seconds:10.1f}{'':9}{outcome.processor:9.1f}" + (f"   {refused} refused" if refused else "")
    same = sum(one is not None and other is not None and one.ids == other.ids for one, other in zip(outcome.results, off.results))
    whole = sum(result is not None for result in off.results)
    return (f"{line}{outcome.passes / max(off.passes, 1):9.2f}{outcome.seconds:10.1f}{outcome.seconds / off.seconds:9.2f}"
            f"{outcome.processor:9.1f}   {same} of {whole}")
