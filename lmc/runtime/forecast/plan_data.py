"""A forecast as JSON data with stable keys; docs/plan.md says what each means.

    {"version": 1, "function": "judge", "calls": {"least": 7, "most": 7}, …, "tree": {"node": "group", "members": […]}}
"""

from __future__ import annotations

from typing import Any

from lmc.runtime.forecast.counts import Counts, ForeseenCall
from lmc.runtime.forecast.sharing import SharingEnd
from lmc.runtime.forecast.summary import Range, Row, rows_of, total_times
from lmc.runtime.forecast.tree import Call, Group
from lmc.types import spell_type

#: Raised when a key changes its meaning or goes.
VERSION = 1


def plan_data(forecast: Counts, *, summarised: bool) -> dict[str, Any]:
    """The whole plan; not summarised, each call stands alone, with its path and the stretches of its text."""
    root = rows_of(forecast, summarised=summarised)
    peak, target = forecast.peak, forecast.target
    return {
        "version": VERSION,
        "program": forecast.program.name,
        "function": forecast.code.name,
        "target": {"name": target.name, "context": target.limit, "slot_bytes": target.slot_bytes, "emulations": list(target.emulations)},
        "calls": _range(total_times(root)),
        "at_once": peak.at_once,
        "in_sequence": forecast.in_sequence,
        "prompt": {"tokens": forecast.prompt_tokens, "saved": forecast.saved_tokens},
        "memory": {"tokens": peak.tokens, "bytes": peak.tokens * target.slot_bytes, "open": peak.open},
        "note": forecast.note or None,
        "error": str(forecast.error.diagnostics[0].message) if forecast.error is not None else None,
        "tree": _node(root, summarised),
    }


def _node(row: Row, summarised: bool) -> dict[str, Any]:
    return _call(row, row.node, summarised) if isinstance(row.node, Call) else _group(row, row.node, summarised)


def _group(row: Row, node: Group, summarised: bool) -> dict[str, Any]:
    return {
        "node": "group", "kind": node.kind, "name": node.name, "where": _where(node), "times": _range(row.times),
        "note": node.note or None, "sharing": _end(row.ends), "more": _more(row.more),
        "members": [_node(inner, summarised) for inner in row.rows],
    }


def _call(row: Row, node: Call, summarised: bool) -> dict[str, Any]:
    written = [call.call.written for call in row.calls]
    most = None if any(w.most is None for w in written) else max(w.most or 0 for w in written)
    forced = next((call.forced for call in row.calls if call.forced is not None), None)
    data: dict[str, Any] = {
        "node": "call", "kind": node.kind, "source": node.source, "where": _where(node), "function": node.function,
        "type": spell_type(node.type), "times": _range(row.times),
        "prompt": {"tokens": _range(row.range(lambda c: c.tokens)), "exact": all(c.exact for c in row.calls),
                   "open": any(c.open for c in row.calls), "static": _range(row.range(lambda c: c.static)),
                   "varying": _range(row.range(lambda c: c.varying)), "shared": _range(row.range(lambda c: c.shared)),
                   "saved": _range(row.range(lambda c: c.saved))},
        "options": list(node.prompt.options) if node.prompt.options is not None and node.kind in ("select", "score") else None,
        "writes": {"least": min(w.fewest for w in written), "most": most},
        "forced": None if forced is None else round(forced, 4),
    }
    return data if summarised else data | _alone(row.calls[0])


def _alone(call: ForeseenCall) -> dict[str, Any]:
    text = [{"known": s.known, "about": s.about, "unknown": s.unknown} for s in call.text]
    return {"path": call.call.path, "level": call.call.level, "text": text}


def _end(ends: list[SharingEnd]) -> dict[str, Any] | None:
    if not ends:
        return None
    first = ends[0]
    return {"tokens": _range(Range(min(e.tokens for e in ends), max(e.tokens for e in ends))), "open": any(e.open for e in ends),
            "ends_at": str(first.span) if first.span is not None else None, "ends_with": first.source or None}


def _more(calls: list[ForeseenCall]) -> dict[str, int] | None:
    return {"calls": len(calls), "tokens": sum(c.read for c in calls), "saved": sum(c.saved for c in calls)} if calls else None


def _where(node: Call | Group) -> str | None:
    return str(node.span) if node.span is not None else None


def _range(range: Range) -> dict[str, int | None]:
    return {"least": range.least, "most": range.most}
