"""`lmc bench tree`: that what is told is about the conversations and the nodes; the figures are the maintainer's."""

from lmc.cli.bench_tree import measure_tree, tree_lines
from lmc.cli.entry import run_command
from lmc.embed import cache_folder

SETTINGS = {"model": "", "dry": True, "cache": cache_folder(), "pool_tokens": 4096}


def test_the_time_is_that_of_the_conversations_and_the_tree_has_the_nodes():
    small, time = measure_tree(SETTINGS, 1, 0)
    large, beside = measure_tree(SETTINGS, 1, 300)
    # Each leaf is a node, and each of the hundred tokens that they begin with.
    assert small + 300 <= large <= small + 400
    for one in (time, beside):
        assert 0 < one.tree < one.total and one.model > 0


def test_the_table_has_both_bars():
    head, few, many = tree_lines(SETTINGS, 1, nodes=100)
    assert head.split() == ["nodes", "engine", "tree", "bar"]
    assert few.endswith("0.3 %") and many.endswith("1.0 %") and int(many.split()[0]) > int(few.split()[0]) + 90


def test_the_command_runs(capsys):
    assert run_command(["bench", "tree", "--dry", "--conversations", "1", "--pool-tokens", "16384"]) == 0
    assert "1.0 %" in capsys.readouterr().out.splitlines()[-1]
