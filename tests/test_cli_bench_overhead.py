"""`lmc bench overhead`: that the right things are counted; the figures are the maintainer's, from a quiet machine."""

from lmc.cli.bench_overhead import TOKENS, measure
from lmc.cli.entry import run_command


def test_calls_tokens_and_prompts_are_those_that_the_bars_are_about():
    found = measure(4, batch=2, slots=2048)
    assert found.calls == 12 and found.tokens >= 12 * TOKENS
    assert 150 < found.prompt / found.calls < 260
    assert found.machine > 0 and found.engine.model > 0
    assert min(found.engine.sampling, found.engine.masks, found.engine.scheduler, found.engine.tree, found.engine.rest) > 0
    assert found.nodes > 0 and found.peak_bytes > 2**20


def test_the_command_prints_both_bars(capsys):
    assert run_command(["bench", "overhead", "--instances", "2", "--batch", "2"]) == 0
    out = capsys.readouterr().out
    assert "instances 2 · calls 6" in out and "(bar 60)" in out and "(bar 500)" in out and " nodes" in out
