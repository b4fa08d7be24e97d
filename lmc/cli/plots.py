"""Figures of benchmarks, as SGLang's paper has them: throughput of engines on the workloads, and of `lmc` with parts left out.

    workloads_figure(data, Path("workloads.png"))       data as `lmc bench workloads --out` writes them
    ablation_figure(data, Path("ablation.svg"))         data as `lmc bench ablation --out` writes them

They are drawn from the numbers of a file and know nothing of how those came about.  matplotlib comes with the extra `lmc[bench]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmc.diagnostics import Diagnostic, UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Told apart by people who see no red or no green, too (Okabe and Ito, 2008); ours is the darkest.
_COLOURS = ("#0b3c6f", "#e69f00", "#56b4e9", "#009e73", "#cc79a7", "#d55e00", "#f0e442", "#999999")
#: What a client adds to a peer's name that makes one call at a time inside a program.
SEQUENTIAL = " seq"
_GREY, _INK = "#d9d9d9", "#222222"
# Workloads in a row of the figure, and the widest that a group of bars is, of 1.
_IN_A_ROW, _GROUP = 8, 0.82


def drawing_extra() -> None:
    """Raises `UsageError` where matplotlib is not installed: better before a long run than after it."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError(Diagnostic("E0853", "figures are drawn by the package `matplotlib`, which is not installed", None,
                                    help="pip install 'lmc[bench]'")) from None


def workloads_figure(data: Mapping[str, Any], path: Path) -> None:
    """Programs a second of each engine on each workload, of the best one's.  Raises `UsageError` where `path` cannot be written."""
    speeds: dict[str, dict[str, float]] = {}
    for outcome in data["outcomes"]:
        speeds.setdefault(outcome["workload"], {})[outcome["contender"]] = outcome["programs_per_second"]
    engines = _side_by_side(dict.fromkeys(outcome["contender"] for outcome in data["outcomes"]))
    styles = _styles(engines)
    names = tuple(speeds)
    rows = [names[start:start + _IN_A_ROW] for start in range(0, len(names), _IN_A_ROW)]
    widest = max(map(len, rows), default=1)
    figure = _figure(max(5.5, 1.5 + 1.45 * widest), 0.9 + 2.7 * len(rows))
    for number, row in enumerate(rows):
        axes = figure.add_subplot(len(rows), 1, number + 1)
        _bars(axes, [speeds[name] for name in row], row, engines, styles)
        # Bars are as wide in the last row, which may have fewer workloads.
        axes.set_xlim(-0.55, widest - 0.45)
    handles, labels = figure.axes[0].get_legend_handles_labels() if figure.axes else ((), ())
    figure.legend(handles, labels, loc="outside upper center", ncols=len(engines), frameon=False)
    _save(figure, path)


def ablation_figure(data: Mapping[str, Any], path: Path) -> None:
    """For each program the throughput with each part left out, of that with all parts.  Raises as `workloads_figure` does."""
    programs = tuple(dict.fromkeys(outcome["program"] for outcome in data["outcomes"]))
    parts = tuple(dict.fromkeys(outcome["left_out"] for outcome in data["outcomes"]))
    seconds = {(outcome["program"], outcome["left_out"]): outcome["seconds"] for outcome in data["outcomes"]}
    most = max((seconds[program, parts[0]] / max(found, 1e-9) for (program, _), found in seconds.items()), default=1.0)
    figure = _figure(2.2 + 2.1 * len(programs), 0.9 + 0.34 * len(parts))
    for number, program in enumerate(programs):
        axes = figure.add_subplot(1, len(programs), number + 1)
        shares = [seconds[program, parts[0]] / max(seconds[program, part], 1e-9) for part in parts]
        bars = axes.barh(range(len(parts)), shares, height=0.68, color=[_COLOURS[0], *[_COLOURS[2]] * (len(parts) - 1)])
        axes.bar_label(bars, fmt="%.2f", padding=2, fontsize=8, color=_INK)
        axes.axvline(1, color=_INK, linewidth=0.7, linestyle=":")
        axes.set_yticks(range(len(parts)), parts if number == 0 else [""] * len(parts))
        axes.set_xlim(0, 1.22 * most)
        axes.set_title(program, fontsize=10)
        axes.invert_yaxis()
        _plain(axes, "x")
    figure.supxlabel("throughput, of that with everything", fontsize=9)
    if figure.axes:
        figure.axes[0].set_ylabel("left out")
    _save(figure, path)


def _bars(axes: Axes, speeds: Sequence[Mapping[str, float]], names: Sequence[str], engines: Sequence[str],
          styles: Mapping[str, Mapping[str, Any]]) -> None:
    """A group for each workload.  Above ours: how much faster it is than the best of the others."""
    width = _GROUP / max(len(engines), 1)
    for number, engine in enumerate(engines):
        there = [(place, found) for place, found in enumerate(speeds) if engine in found]
        places = [place + (_before(engine, engines, found) - (len(found) - 1) / 2) * width for place, found in there]
        heights = [found[engine] / max(found.values()) for _, found in there]
        axes.bar(places, heights, 0.92 * width, label=engine, **styles[engine])
        for place, height, (_, found) in zip(places, heights, there):
            others = [speed for name, speed in found.items() if name != engine]
            if number == 0 and others:
                axes.text(place, height + 0.02, f"{found[engine] / max(others):.1f}×", ha="center", va="bottom", fontsize=8, color=_INK)
    axes.set_xticks(range(len(names)), [name.replace("_", " ").replace(" of ", " of\n") for name in names], fontsize=8.5)
    axes.set_ylim(0, 1.15)
    axes.set_ylabel("programs/s, of the best", fontsize=9)
    _plain(axes, "y")


def _side_by_side(engines: Iterable[str]) -> tuple[str, ...]:
    """In their order, each one's sequential client beside it."""
    given = tuple(engines)
    plain = tuple(dict.fromkeys(engine.removesuffix(SEQUENTIAL) for engine in given))
    return tuple(name for engine in plain for name in (engine, engine + SEQUENTIAL) if name in given)


def _before(engine: str, engines: Sequence[str], found: Mapping[str, float]) -> int:
    """How many bars of the group stand before this engine's."""
    return sum(name in found for name in engines[:engines.index(engine)])


def _styles(engines: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A colour for each engine; its sequential client has the same one, hatched."""
    plain = tuple(dict.fromkeys(engine.removesuffix(SEQUENTIAL) for engine in engines))
    colours = {engine: _COLOURS[number % len(_COLOURS)] for number, engine in enumerate(plain)}
    return {engine: {"color": colours[engine.removesuffix(SEQUENTIAL)],
                     **({"hatch": "////", "edgecolor": "white", "linewidth": 0} if engine.endswith(SEQUENTIAL) else {})} for engine in engines}


def _plain(axes: Axes, along: str) -> None:
    """Nothing round the bars but what helps to read their length."""
    axes.grid(axis=along, color=_GREY, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=8.5)
    for side in ("top", "right", "left" if along == "y" else "bottom"):
        axes.spines[side].set_visible(False)


def _figure(width: float, height: float) -> Figure:
    drawing_extra()
    # Without pyplot: it would look for a screen and keep every figure.
    from matplotlib.figure import Figure

    return Figure((width, height), layout="constrained")


def _save(figure: Figure, path: Path) -> None:
    try:
        figure.savefig(path, dpi=200)
    except (OSError, ValueError) as error:
        # A ValueError is an ending that is no format.
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(Diagnostic("E0853", f"`{path}` cannot be drawn: {reason}", None, help="say where with `--plot FILE.png`")) from None
