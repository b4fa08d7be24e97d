"""The figures of `lmc bench`: what is drawn for which numbers, and what is said where nothing can be drawn."""

import builtins
import struct

import pytest

from lmc import UsageError
from lmc.cli import plots
from lmc.cli.entry import run_command
from lmc.cli.plots import ablation_figure, workloads_figure

pytest.importorskip("matplotlib")


def outcome(workload: str, contender: str, speed: float) -> dict:
    return {"workload": workload, "contender": contender, "programs_per_second": speed}


WORKLOADS = {"outcomes": [
    outcome("mmlu", "lmc", 4.0), outcome("mmlu", "vllm", 2.0), outcome("mmlu", "vllm seq", 1.0),
    outcome("rag", "lmc", 1.0), outcome("rag", "vllm", 2.0),
]}
ABLATION = {"outcomes": [{"program": program, "left_out": left_out, "seconds": seconds}
                         for program in ("judge", "chat") for left_out, seconds in (("nothing", 1.0), ("cache", 4.0), ("tree", 2.0))]}


@pytest.fixture
def drawn(monkeypatch):
    """The figures that would have been written."""
    figures = []
    monkeypatch.setattr(plots, "_save", lambda figure, path: figures.append(figure))
    return figures


def heights(axes) -> list[list[float]]:
    return [[round(bar.get_height(), 3) for bar in container] for container in axes.containers]


def test_throughput_of_the_best_is_one(drawn):
    workloads_figure(WORKLOADS, None)
    (axes,) = drawn[0].axes
    assert heights(axes) == [[1.0, 0.5], [0.5, 1.0], [0.25]]
    middles = [bar.get_x() + bar.get_width() / 2 for bar in (axes.containers[0][1], axes.containers[1][1])]
    assert sum(middles) / 2 == pytest.approx(1), "two bars stand round their place where a third is missing"
    assert [text.get_text() for text in axes.texts] == ["2.0×", "0.5×"]
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == ["lmc", "vllm", "vllm seq"]
    ours, theirs, sequential = (container[0] for container in axes.containers)
    assert ours.get_facecolor() != theirs.get_facecolor() == sequential.get_facecolor() and sequential.get_hatch() and not theirs.get_hatch()


def test_sixteen_workloads_stand_in_two_rows(drawn):
    workloads_figure({"outcomes": [outcome(f"w{number}", "lmc", 1.0) for number in range(16)]}, None)
    assert [len(axes.get_xticks()) for axes in drawn[0].axes] == [8, 8]


def test_a_program_of_the_ablation_is_beside_the_whole(drawn):
    ablation_figure(ABLATION, None)
    judge, chat = drawn[0].axes
    assert [round(bar.get_width(), 3) for bar in judge.containers[0]] == [1.0, 0.25, 0.5]
    assert [label.get_text() for label in judge.get_yticklabels()] == ["nothing", "cache", "tree"] and chat.get_title() == "chat"


@pytest.mark.parametrize("draw, data", [(workloads_figure, WORKLOADS), (ablation_figure, ABLATION), (workloads_figure, {"outcomes": []})])
def test_a_picture_is_written(draw, data, tmp_path):
    path = tmp_path / "figure.png"
    draw(data, path)
    head = path.read_bytes()[:24]
    width, height = struct.unpack(">II", head[16:24])
    assert head[:8] == b"\x89PNG\r\n\x1a\n" and width > 300 and height > 150


@pytest.mark.parametrize("name, message", [("nowhere/figure.png", "No such file"), ("figure.gifx", "gifx")])
def test_what_cannot_be_written_is_said(name, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        workloads_figure(WORKLOADS, tmp_path / name)


def test_without_matplotlib_nothing_is_run(monkeypatch, tmp_path, capsys):
    found = builtins.__import__

    def missing(name, *rest, **more):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return found(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    for command in (["workloads", "--dry"], ["ablation"]):
        assert run_command(["bench", *command, "--plot", str(tmp_path / "figure.png")]) == 2
        shown = capsys.readouterr()
        assert "pip install 'lmc[bench]'" in shown.err and not shown.out


def test_commands_draw_what_they_measured(tmp_path):
    for command in (["workloads", "--dry", "--rows", "1", "--only", "mmlu"], ["ablation", "--rows", "1", "--program", "chat"]):
        path = tmp_path / f"{command[0]}.png"
        assert run_command(["bench", *command, "--plot", str(path)]) == 0
        assert path.read_bytes().startswith(b"\x89PNG")
