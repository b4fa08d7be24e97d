"""The formats of JSON Schema as regexes, and real calendar days among them.

    FORMATS["date"]       # 2024-02-29 fits, 2023-02-29 does not, nor 1900-02-29

What is left out is what generated text does not need: leap seconds, the lower-case `t` and `z`, quoted local parts of addresses.
Each text that fits is right.  This file knows no automata.
"""

from __future__ import annotations

_LEAP = r"(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DATE = (
    r"(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
    rf"|{_LEAP}-02-29)"
)
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+\-](?:[01]\d|2[0-3]):[0-5]\d)"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_HEX = r"[0-9A-Fa-f]{1,4}"


def _ipv6() -> str:
    """At most one `::`, and an IPv4 address in place of the last two groups."""
    last = rf"(?:{_HEX}:{_HEX}|{_IPV4})"
    options = [rf"(?:{_HEX}:){{6}}{last}"]
    for before in range(8):
        left = rf"(?:(?:{_HEX}:){{0,{before - 1}}}{_HEX})?" if before else ""
        after = 7 - before
        right = rf"(?:{_HEX}:){{{after - 2}}}{last}" if after >= 2 else _HEX if after == 1 else ""
        options.append(f"{left}::{right}")
    return "(?:" + "|".join(options) + ")"


_IPV6 = _ipv6()
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]*[A-Za-z0-9])?"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\-]+"
_PERCENT = r"%[0-9A-Fa-f]{2}"
_PCHAR = rf"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|{_PERCENT})"
_USER = rf"(?:(?:[A-Za-z0-9\-._~!$&'()*+,;=:]|{_PERCENT})*@)?"
_HOST = rf"(?:\[{_IPV6}\]|(?:[A-Za-z0-9\-._~!$&'()*+,;=]|{_PERCENT})*)"
_AUTHORITY = rf"//{_USER}{_HOST}(?::\d*)?(?:/{_PCHAR}*)*"
_ABSOLUTE = rf"/(?:{_PCHAR}+(?:/{_PCHAR}*)*)?"
_TAIL = rf"(?:\?(?:{_PCHAR}|[/?])*)?(?:#(?:{_PCHAR}|[/?])*)?"
_URI = rf"[A-Za-z][A-Za-z0-9+.\-]*:(?:{_AUTHORITY}|{_ABSOLUTE}|{_PCHAR}+(?:/{_PCHAR}*)*)?{_TAIL}"
_FIRST = rf"(?:[A-Za-z0-9\-._~!$&'()*+,;=@]|{_PERCENT})"
_RELATIVE = rf"(?:{_AUTHORITY}|{_ABSOLUTE}|{_FIRST}+(?:/{_PCHAR}*)*)?{_TAIL}"
_ALNUM, _INNER = "[A-Za-z0-9]", r"[A-Za-z0-9\-]"
# No hyphens in places 3 and 4, as in `xn--`; lengths so that five names stay below 253 characters.
_NAME = rf"(?:{_ALNUM}|{_ALNUM}{_INNER}{{0,2}}{_ALNUM}|{_ALNUM}{_INNER}(?:{_ALNUM}{_INNER}|-{_ALNUM}){_INNER}{{0,44}}{_ALNUM})"
_CLOCK = r"T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)"
_DAYS = r"(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)"

#: Format -> a regex for the whole text.
FORMATS: dict[str, str] = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "duration": rf"P(?:\d+W|{_DAYS}(?:{_CLOCK})?|{_CLOCK})",
    "hostname": rf"{_NAME}(?:\.{_NAME}){{0,4}}",
    "email": rf"{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*",
    "uuid": r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "uri": _URI,
    "uri-reference": f"(?:{_URI}|{_RELATIVE})",
    "json-pointer": r"(?:/(?:[^/~]|~[01])*)*",
    "byte": r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?",
}

#: Formats of integers -> their bounds.
INTEGER_FORMATS: dict[str, tuple[int, int]] = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
#: Formats of numbers that every number has.
NUMBER_FORMATS = frozenset({"float", "double"})
