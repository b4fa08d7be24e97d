"""What a cassette's JSON must look like, and the check of it: every key, every type, nothing else.

    FORM["calls"][0]["answer"]["finish"]      one of "eos", "stop", "complete", "length"
    check_form(data, FORM)                    raises FormError("at calls[3].answer.finish: expected …, found …")
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lmc.diagnostics import RunError
from lmc.runtime.request import Finish


class FormError(ValueError):
    """The data are not of the form; the message names the place."""


@dataclass(frozen=True, slots=True)
class Is:
    """A scalar: what it must be, in words, and the test."""

    what: str
    fits: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Each:
    """A list of any length, or with `values` a dict with any keys, of one form."""

    form: Any
    values: bool = False


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several forms; told apart by the keys that each object must have."""

    forms: tuple[Any, ...]


def check_form(data: Any, form: Any, place: str = "") -> None:
    """Raises `FormError` where the data are not of the form.  A dict is an object with exactly these keys."""
    match form:
        case Is(what, fits):
            if not fits(data):
                raise _wrong(place, what, data)
        case Each(inner, values):
            if not isinstance(data, dict if values else list):
                raise _wrong(place, "an object" if values else "a list", data)
            for key, item in data.items() if values else enumerate(data):
                check_form(item, inner, f"{place}.{key}" if values else f"{place}[{key}]")
        case OneOf(forms):
            _check_one(data, forms, place)
        case dict():
            if not isinstance(data, dict):
                raise _wrong(place, "an object", data)
            if data.keys() != form.keys():
                odd = sorted(data.keys() ^ form.keys())[0]
                raise FormError(f"{_at(place)}the key `{odd}` is {'not known' if odd in data else 'missing'}")
            for key, inner in form.items():
                check_form(data[key], inner, f"{place}.{key}" if place else key)


def _check_one(data: Any, forms: tuple[Any, ...], place: str) -> None:
    faults = []
    for form in forms:
        try:
            return check_form(data, form, place)
        except FormError as error:
            # The form whose keys are there is the one that is meant.
            if isinstance(form, dict) and isinstance(data, dict) and form.keys() == data.keys():
                raise
            faults.append(error)
    raise faults[-1]


def _at(place: str) -> str:
    return f"at {place}: " if place else ""


def _wrong(place: str, what: str, found: Any) -> FormError:
    shown = json.dumps(found, ensure_ascii=False)
    return FormError(f"{_at(place)}expected {what}, found {shown if len(shown) <= 60 else shown[:57] + '…'}")


def _one_of(*values: str) -> Is:
    return Is("one of " + ", ".join(json.dumps(v) for v in values), lambda v: isinstance(v, str) and v in values)


def _is_hex(value: Any) -> bool:
    return isinstance(value, str) and len(value) % 2 == 0 and all(c in "0123456789abcdef" for c in value)


_TEXT = Is("a text", lambda v: isinstance(v, str))
_BOOL = Is("true or false", lambda v: isinstance(v, bool))
_COUNT = Is("a whole number from 0", lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= 0)
_NUMBER = Is("a number", lambda v: isinstance(v, (int, float)) and not isinstance(v, bool))
_NULL = Is("null", lambda v: v is None)
_ANY = Is("JSON", lambda v: True)
_OPTIONAL_TEXT = Is("a text or null", lambda v: v is None or isinstance(v, str))

_CONTROL = {"control": _TEXT}
#: A token: its text, the bytes of one that is no whole text, or the spelling of a control token.
_TOKEN = OneOf((_CONTROL, {"bytes": Is("hexadecimal digits", _is_hex)}, _TEXT))
_PIECES = Each(OneOf((_CONTROL, _TEXT)))
_MARKERS = {"start": Each(_PIECES, values=True), "between": Each(Each(_PIECES, values=True), values=True)}
_MODEL = {"name": _TEXT, "controls": Each(_TEXT), "ends": Each(_TEXT), "bos": _OPTIONAL_TEXT, "begin": _OPTIONAL_TEXT,
          "space_at_start": _BOOL, "space_before_space": _BOOL, "template": OneOf((_MARKERS, _NULL))}

_ERROR = {"error": {"kind": _one_of(*RunError.KINDS), "code": _TEXT, "message": _TEXT, "help": _OPTIONAL_TEXT}}
_USAGE = {"cached": _COUNT, "computed": _COUNT, "generated": _COUNT, "passes": _COUNT}
_LOGPROB = {"token": _TOKEN, "logprob": _NUMBER, "top": Each({"token": _TOKEN, "logprob": _NUMBER})}
_GENERATED = {"text": _TEXT, "context": _TEXT, "tokens": Each(_TOKEN), "finish": _one_of(*(f.value for f in Finish)),
              "stop": _OPTIONAL_TEXT, "valid": _BOOL, "usage": _USAGE, "logprobs": Each(_LOGPROB)}
_SCORED = {"rows": Each({"tokens": Each(_TOKEN), "logprobs": Each(_NUMBER), "usage": _USAGE})}
_CONSTRAINT = {"of": _TEXT, "sha256": _TEXT}
_GEN_ASK = {"kind": _one_of("gen"), "prompt": _PIECES, "options": Each(_ANY, values=True), "follow": _TEXT,
            "constraint": OneOf((_CONSTRAINT, _NULL))}
_SCORE_ASK = {"kind": _one_of("select", "score"), "prompt": _PIECES, "options": Each(_PIECES)}
_CALL = {"at": _TEXT, "where": _TEXT, "ask": OneOf((_GEN_ASK, _SCORE_ASK)), "answer": OneOf((_GENERATED, _SCORED, _ERROR, _NULL))}
_EXTERN = {"at": _TEXT, "where": _TEXT, "ask": {"name": _TEXT, "args": Each(_ANY)},
           "answer": OneOf(({"result": _ANY}, _ERROR, _NULL))}

FORM = {"lmc_cassette": Is("the format's number", lambda v: isinstance(v, int)), "test": _TEXT, "program": _TEXT, "seed": _COUNT,
        "overrides": Each(_ANY, values=True), "model": _MODEL, "calls": Each(_CALL), "externs": Each(_EXTERN)}
