"""A forecast as a page to read: the sums, the tree with its counts, and where sharing ends.

    call                          at       calls   prompt   static  varying   shared   writes   forced
    judge(essay, dimensions)      17:1
    ├─ fork ×2                    27:5
    │  ├─ gen(stop="\\n\\n", …)     30:21        2      145      136        9      117     ≤ 80
    │  └─ gen(Note)               32:20        2    ≈146+      137        9      145    ≤ 256     37 %
    └─ gen(Verdict, …)            40:26        1    ≈189+      178       11      117    ≤ 320     36 %

Numbers are tokens.  This file knows how a page looks and counts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from lmc.diagnostics import Span
from lmc.runtime.forecast.counts import Counts, ForeseenCall
from lmc.runtime.forecast.memory import memory_peak
from lmc.runtime.forecast.sharing import SharingEnd
from lmc.runtime.forecast.summary import Range, Row, rows_of, total_times
from lmc.runtime.forecast.tree import Call, Group

_HEADS = ("at", "calls", "prompt", "static", "varying", "shared", "writes", "forced")
# Wider than this no label gets; the whole page then has at most 120 columns.
_LABEL = 44
# A function that calls itself is shown so often, one in the other.
_DEEPEST = 2
# More rows than this are a program that nobody reads as a table.
_MOST_ROWS = 200
_MEMBER = {"fork": "branch", "map": "element", "loop": "round", "arms": "arm"}
_MEMBERS = {"fork": "branches", "map": "elements", "loop": "rounds", "arms": "arms"}
_LEGEND = ("+ more that only the run knows: what is generated, read or fetched before",
           "≈ some of it stands beside such a value, where tokens may fall otherwise")


def plan_text(forecast: Counts, *, summarised: bool) -> str:
    """The page, without a newline at its end."""
    root = rows_of(forecast, summarised=summarised)
    lines = [*_title(forecast), "", *_sums(forecast, root)]
    if forecast.calls:
        lines += ["", *_table(forecast, root)]
    sharing = list(_sharing(forecast, root))
    if sharing:
        lines += ["", "Sharing", *sharing]
    notes = list(_notes(forecast))
    if notes:
        lines += ["", *notes]
    return "\n".join(lines)


def _title(forecast: Counts) -> Iterator[str]:
    code = forecast.code
    yield f"{code.name}({', '.join(p.name for p in code.params)})  ·  {code.span or forecast.program.name}  ·  {forecast.target.name}"


def _sums(forecast: Counts, root: Row) -> Iterator[str]:
    total, peak = total_times(root), forecast.peak
    if not forecast.calls:
        yield "calls     none: it never asks the model"
        return
    repeated = any(row.more and row.kind == "loop" for row in _walk(root))
    chain = f"the longest chain has {forecast.in_sequence:,}" + ", and more with each round" * repeated
    once = [f"{peak.at_once:,} at once at most"] if peak.at_once > 1 else []
    yield f"calls     {'; '.join([_range(total), *once, *([chain] if forecast.in_sequence > 1 or repeated else [])])}"
    read, saved = forecast.prompt_tokens, forecast.saved_tokens
    share = f" ({100 * saved // read} %)" if read else ""
    yield f"prompts   {read:,} known tokens; {saved:,} of them{share} are shared and need no computing"
    if not forecast.target.slot_bytes:
        return  # the model is behind a server
    size = _bytes(peak.tokens * forecast.target.slot_bytes)
    more = ", and what only the run knows" if peak.open else ""
    yield f"memory    at most {peak.tokens:,} tokens of keys and values at once, {size}{more}"


def _table(forecast: Counts, root: Row) -> Iterator[str]:
    lines = list(_lines(forecast, root, "", "", ()))
    hidden = len(lines) - _MOST_ROWS
    if hidden > 0:
        lines = lines[:_MOST_ROWS]
    width = min(_LABEL, max(len(label) for label, _ in lines) + 1)
    used = [i for i in range(len(_HEADS)) if any(cells and cells[i] for _, cells in lines)]
    widths = {i: max(len(_HEADS[i]), *(len(cells[i]) for _, cells in lines)) for i in used}
    yield "call".ljust(width) + "".join(f"  {_HEADS[i]:>{widths[i]}}" if i else f"  {_HEADS[i]:<{widths[i]}}" for i in used)
    for label, cells in lines:
        short = label if len(label) <= width else label[: width - 1] + "…"
        columns = "".join(f"  {cells[i]:>{widths[i]}}" if i else f"  {cells[i]:<{widths[i]}}" for i in used)
        yield (short.ljust(width) + columns).rstrip()
    if hidden > 0:
        yield f"… and {hidden:,} lines more; `--format=json` has them all"


def _lines(forecast: Counts, row: Row, first: str, rest: str, around: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The lines of a row and of those in it; `around`: the functions that it is in."""
    if row.kind == "def":
        if around.count(row.node.name) >= _DEEPEST:
            yield f"{first}{row.node.name}() and so on: {_range(total_times(row))} calls", _cells(forecast, row)
            return
        around = (*around, row.node.name)
    yield first + _label(row), _cells(forecast, row)
    for index, inner in enumerate(row.rows):
        last = index == len(row.rows) - 1
        yield from _lines(forecast, inner, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "), around)


def _label(row: Row) -> str:
    node = row.node
    if isinstance(node, Call):
        return node.source or node.kind
    times = "" if row.times == Range(1, 1) else f" ×{_range(row.times)}"
    note = f"  ({node.note})" if node.note else ""
    if node.kind in ("def", "arm"):
        return f"{node.name}{'()' if node.kind == 'def' else ''}{times}{note}"
    if node.kind in ("branch", "element", "round"):
        return f"{node.kind} {node.name}{times}{note}"
    # What is written there, where that tells more than the kind of group.
    name = node.name or {"loop": "for", "map": "for", "arms": "fork"}.get(node.kind, node.kind)
    return f"{name}{' ×' + _range(row.times) if node.kind in ('fork', 'map', 'loop') else times}{note}"


def _cells(forecast: Counts, row: Row) -> tuple[str, ...]:
    place = _place(forecast, row.node.span)
    if not row.calls:
        return (place, *("",) * (len(_HEADS) - 1))
    exact = all(call.exact for call in row.calls)
    prompt = ("" if exact else "≈") + _range(row.range(lambda c: c.tokens)) + "+" * any(call.open for call in row.calls)
    written = [call.call.written for call in row.calls]
    forced = next((call.forced for call in row.calls if call.forced is not None), None)
    return (place, _range(row.times), prompt, _range(row.range(lambda c: c.static)), _range(row.range(lambda c: c.varying)),
            _range(row.range(lambda c: c.shared)), _writes(written), f"{forced:.0%}".replace("%", " %") if forced is not None else "")


def _writes(written: list[object]) -> str:
    least = min(w.fewest for w in written)
    most = None if any(w.most is None for w in written) else max(w.most for w in written)
    if most is None:
        return f"{least}..*"
    return f"≤ {most:,}" if least == 0 and most else _range(Range(least, most))


def _sharing(forecast: Counts, root: Row) -> Iterator[str]:
    for row in _walk(root):
        if row.ends or row.more:
            yield f"  {_label(row)}  {_place(forecast, row.node.span)}"
        if row.ends:
            yield f"    {_end(forecast, row, row.ends)}"
        if row.more:
            yield f"    {_more(forecast, row)}"


def _end(forecast: Counts, row: Row, ends: list[SharingEnd]) -> str:
    tokens = Range(min(e.tokens for e in ends), max(e.tokens for e in ends))
    shared = f"its {_MEMBERS[row.kind]} share {_range(tokens)} tokens" + (" and more that only the run knows" if any(e.open for e in ends) else "")
    end = next((e for e in ends if e.span is not None or e.source), ends[0])
    if end.span is None and not end.source:
        return f"{shared}, " + ("each goes on from the one before" if row.kind == "loop" else "all they have")
    why = f"`{end.source}`" if end.source.startswith("${") else end.source or "text"
    return f"{shared}, up to {why}" + (f" at {_place(forecast, end.span)}" if end.span is not None else "")


def _more(forecast: Counts, row: Row) -> str:
    read, saved = sum(c.read for c in row.more), sum(c.saved for c in row.more)
    inner = {call.call for call in row.more}
    base = memory_peak(c.call for c in forecast.calls)
    larger = memory_peak(c.call for c in (*forecast.calls, *(c for c in row.more if c.call in inner)))
    grown = larger.tokens - base.tokens
    return (f"each further {_MEMBER[row.kind]} reads {read:,} known tokens, {saved:,} of them shared"
            + (f", and needs {grown:,} tokens of memory" if grown > 0 else ""))


def _notes(forecast: Counts) -> Iterator[str]:
    text = [line for line, shown in zip(_LEGEND, (any(c.open for c in forecast.calls), not all(c.exact for c in forecast.calls))) if shown]
    yield from text
    for emulation in forecast.target.emulations:
        yield f"{forecast.target.name} cannot do this itself: {emulation}"
    longest = max((c.tokens for c in forecast.calls), default=0)
    if longest >= forecast.target.limit:
        yield f"a prompt of {longest:,} tokens does not fit: the model's context has {forecast.target.limit:,}"
    if forecast.note:
        yield forecast.note


def _walk(row: Row) -> Iterator[Row]:
    yield row
    for inner in row.rows:
        yield from _walk(inner)


def _place(forecast: Counts, span: Span | None) -> str:
    """`30:21`; with the file where it is not the function's."""
    if span is None:
        return ""
    home = forecast.code.span
    file = "" if home is not None and span.file == home.file else f"{span.file.rpartition('/')[2]}:"
    return f"{file}{span.line}:{span.column}"


def _range(range: Range) -> str:
    if range.most is None:
        return f"{range.least:,}..*"
    return f"{range.least:,}" if range.least == range.most else f"{range.least:,}..{range.most:,}"


def _bytes(size: int) -> str:
    """`1.4 MiB`."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:,.1f} {unit}" if unit != "bytes" else f"{size:,} bytes"
        size /= 1024
    return f"{size:,.1f} GiB"
