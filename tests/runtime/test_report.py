"""The counts of each call: what its prompt is made of, and that they add up to those of the run."""

import json

from lmc.cli.entry import run_command
from tests.runtime.programs import dry_session, program_of, run

PROGRAM = '''
def f(q: str, n: int = 2) -> str:
    user: "Question: ${q}"
    fork i in range(n):
        assistant:
            a = gen(stop="o", max_tokens=5)
            " and "
            b = select(["yes", "no"])
    join b as bs
    user: "Again."
    assistant: last = gen(max_tokens=4)
    return last
'''


def test_text_and_what_generations_wrote_make_the_prompt(tmp_path):
    session = dry_session()
    report = run(program_of(PROGRAM, tmp_path), session, "f", "why", 2).report
    gens = [c for c in report.by_call if c.kind == "gen"]
    assert sorted((c.kind, c.path) for c in report.by_call) == [
        ("gen", "0:0/1"), ("gen", "0:1/1"), ("gen", "2"), ("select", "0:0/"), ("select", "0:1/")]
    assert {c.prompt for c in gens} == {len(r.prompt) for r in session.requests} and all(c.text == (c.prompt,) for c in gens)
    by_path = {c.path: c for c in report.by_call}
    for gen, choice in ((by_path["0:0/1"], by_path["0:0/"]), (by_path["0:1/1"], by_path["0:1/"])):
        # What a cut token leaves is text of the next segment, so `written` may be less than what was generated.
        assert choice.text[0] == gen.prompt and choice.written[0] <= gen.generated
        assert choice.prompt == sum(choice.text) + sum(choice.written)
    assert report.calls == len(report.by_call) == 5
    cached, computed, generated = (sum(getattr(c, name) for c in report.by_call) for name in ("cached", "computed", "generated"))
    # What was computed ahead for the branches counts for the first that found it.
    assert (report.cached, report.computed, report.generated) == (cached, computed, generated)


def test_the_report_of_a_run_is_json(tmp_path, capsys):
    (tmp_path / "f.lmp").write_text(PROGRAM)
    assert run_command(["run", f"{tmp_path}/f.lmp", "--q", "x", "--dry", "--report", f"{tmp_path}/r.json"]) == 0
    data = json.loads((tmp_path / "r.json").read_text())
    assert data["calls"] == len(data["by_call"]) == 5 and {c["where"].rpartition("f.lmp:")[2] for c in data["by_call"]} >= {"6:17", "8:17"}
    assert run_command(["run", f"{tmp_path}/f.lmp", "--q", "x", "--dry", "--report", f"{tmp_path}/no/r.json"]) == 2
    assert "E0853" in capsys.readouterr().err
    assert run_command(["run", f"{tmp_path}/f.lmp", "--q", "x", "--dry", "--report", "r.json", "--batch", "-"]) == 2
