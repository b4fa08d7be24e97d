"""`lmc bench peers`: ours and fake peers take turns on fresh data, the table adds up, and what goes wrong is told."""

import json
import re
import sys
from pathlib import Path

import pytest

from lmc.cli import bench_peers
from lmc.cli.entry import run_command
from lmc.cli.peers.small_run import Run
from lmc.cli.peers.exchange import PeerError
from lmc.cli.peers.known import PEERS, Installed, chosen_peers, start_peer
from lmc.cli.peers.small_table import HEAD, bar_lines, lines, same_texts, work_differs
from lmc.cli.peers.small_turns import Score, take_turns
from lmc.cli.peers.small_workloads import SMALL_WORKLOADS
from lmc.diagnostics import UsageError
from tests.peers.small_data import REGEX, small_set

ROOT = Path(__file__).resolve().parents[2]
BY_NAME = {workload.name: workload for workload in SMALL_WORKLOADS}


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "sets.json"
    path.write_text(json.dumps({str(salt): small_set(salt) for salt in range(3)}))
    return path


def test_ours_alone(data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    out = tmp_path / "out.json"
    assert run_command(["bench", "peers", "--dry", "--sets", "2", "--data", str(data), "--out", str(out)]) == 0
    machine, head, *rest = capsys.readouterr().out.splitlines()
    assert " cores, " in machine and head.split()[:4] == ["workload", "client", "by", "seconds"] and "load of the machine" in rest[-1]
    scores = {(score["workload"], score["contestant"]): score for score in json.loads(out.read_text())["scores"]}
    assert {name for name, by in scores if by == "lmc"} == set(BY_NAME)
    for name in ("W1", "W2", "W3", "W4", "W5", "W6"):
        ids, program = (scores[name, by]["runs"] for by in ("lmc", "lmc programs"))
        for one, other in zip(ids, program, strict=True):
            # The stand-in has tokens of several letters: texts make other prompts than ids, and objects other lengths.
            assert one["calls"] == other["calls"] and (name == "W4" or one["output"] == other["output"]), name
    assert all(run["computed"] < run["prompt"] for run in scores["W2", "lmc"]["runs"])


class Fake:
    """Answers from a list of seconds; `fails`: in that run it ends."""

    sequential, precision = True, "bfloat16"

    def __init__(self, name, seconds, *, fails=None, cannot=()):
        self.name, self.seconds, self.fails, self.without = name, iter(seconds), fails, cannot
        self.seen, self.awake, self.all = [], False, None

    def cannot(self, workload):
        return "it has no regex" if workload.name in self.without else None

    def run(self, workload, data, *, parallel):
        assert self.awake and sum(other.awake for other in self.all) == 1, "the others are paused"
        self.seen.append((data["mark"], parallel))
        if len(self.seen) - 1 == self.fails:
            raise PeerError("it has ended")
        return Run(next(self.seconds), 2, 100, 20, 50, 10, 1 << 20, ("a", "b"))

    def pause(self):
        self.awake = False

    def resume(self):
        self.awake = True


def turns(contestants, name="W1", *, rounds=3, clients=(True,)):
    for contestant in contestants:
        contestant.all = contestants
    told = []
    sets = {str(salt): {key: {"mark": salt} for key in ("W1", "W2", "W4")} for salt in range(5)}
    return take_turns(contestants, BY_NAME[name], sets, rounds, clients, told.append), told


def test_every_round_has_data_of_its_own_and_the_last_set_warms_up():
    one, other = Fake("lmc", [9, 1, 3, 2]), Fake("vllm", [9, 4, 6, 5])
    scores, told = turns([one, other])
    assert [mark for mark, _ in one.seen] == [mark for mark, _ in other.seen] == [4, 0, 1, 2] and told == []
    assert [score.median.seconds for score in scores] == [2, 5], "the warm-up does not count"


def test_two_kinds_of_client_where_they_differ():
    scores, _ = turns([Fake("vllm", [1] * 99)], "W2", clients=(True, False))
    assert [score.parallel for score in scores] == [True, False]
    scores, _ = turns([Fake("vllm", [1] * 99)], "W1", clients=(True, False))
    assert [score.parallel for score in scores] == [True]


def test_who_fails_is_told_and_the_others_go_on():
    scores, told = turns([Fake("lmc", [1] * 9), Fake("vllm", [1] * 9, fails=2)], "W4")
    assert told == ["    it has ended"]
    assert [score.contestant for score in scores] == ["lmc"]


def score(name: str, contestant: str, seconds: float, **changes) -> Score:
    run = Run(seconds, changes.get("calls", 2), 100, changes.get("output", 20), 25, 10, 1 << 20, changes.get("texts", ("a", "b")))
    return Score(name, contestant, "bfloat16", changes.get("parallel", True), (run,))


def test_the_table():
    scores = [score("W1", "lmc", 2.0), score("W1", "vllm", 4.0, texts=("a", "c")), score("W1", "llama", 8.0)]
    ours, vllm, llama = (line.split() for line in lines(scores, "lmc", 1.0, greedy=True))
    assert ours == ["W1", "parallel", "lmc", "2.00", "10.0", "20", "100", "25", "0.750", "10", "1", "0.50", "2.00"]
    assert vllm[1:3] == ["vllm", "4.00"] and vllm[-5:] == ["0.25", "1.00", "1", "of", "2"]
    assert llama[-4:] == ["0.50", "2", "of", "2"]
    assert same_texts(scores[1], scores, "lmc") == "1 of 2"
    assert all("of" not in line.split() for line in lines(scores, "lmc", 1.0, greedy=False))


def test_unequal_work_is_told():
    assert work_differs([score("W1", "lmc", 1), score("W1", "vllm", 1)], "lmc") == []
    (line,) = work_differs([score("W1", "lmc", 1), score("W1", "vllm", 1, output=19)], "lmc")
    assert line == "    vllm differs in output: 19 for our 20"


def test_the_bars():
    scores = [score("W1", "lmc", 2.0), score("W1", "lmc programs", 1.9), score("W1", "vllm", 4.0),
              score("W1", "vllm", 3.0, parallel=False), score("W1", "llama", 2.5)]
    (line,) = bar_lines(scores, "lmc", {"W1": 1.0}, "bfloat16")
    assert "lmc programs 1.90 s" in line and "1.32 times the best peer, llama" in line
    assert "1.58 times vllm, the bar is 1.8: missed" in line and "0.53 of the roofline, the bar is 0.8: missed" in line
    (line,) = bar_lines(scores, "lmc", {"W1": None}, "float32")
    assert "bar" not in line, "the bars are those of bfloat16"


def test_which_peers(tmp_path, capsys):
    installed = Installed(tmp_path, tmp_path)
    assert chosen_peers(None, installed) == () and chosen_peers("vllm, llama,vllm", installed) == ("vllm", "llama")
    with pytest.raises(UsageError, match="there is no peer `vlm`"):
        chosen_peers("vlm", installed)
    with pytest.raises(PeerError, match="is not installed in"):
        start_peer("vllm", installed)
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / ".ready").touch()
    assert installed.names() == ("vllm",)


def test_each_peer_has_an_adapter_and_each_adapter_a_list():
    folder = ROOT / "benchmarks" / "peers"
    adapters = {path.stem.removesuffix("_peer") for path in folder.glob("*_peer.py")}
    assert adapters == set(PEERS)
    assert adapters <= {path.stem for path in folder.glob("*.txt")}


def test_the_programs_say_what_the_data_say():
    """The regex of the program is that of the data."""
    import lmc

    text = (ROOT / "examples" / "peers" / "extract.lmp").read_text(encoding="utf-8")
    pieces = [line.split('r"""')[1].split('"""')[0] for line in text.splitlines() if 'r"""' in line]
    assert "".join(pieces) == REGEX
    for path in (ROOT / "examples" / "peers").glob("*.lmp"):
        lmc.load(path, dry=True).close()


def test_data_that_is_none(tmp_path, capsys):
    for text, says in ((None, "cannot be read: No such file"), ("{", "is not the data"), ('{"0": {}}', "does not hold sets of W1 to W7")):
        path = tmp_path / "data.json"
        if text is not None:
            path.write_text(text)
        assert run_command(["bench", "peers", "--dry", "--data", str(path)]) == 2
        assert says in capsys.readouterr().err


def test_a_peer_over_the_protocol(data, monkeypatch, capsys, tmp_path):
    """The command with a peer's process: the fake in the place of an installed engine, ours the stand-in model."""
    from lmc.cli.peers import contestants
    from lmc.cli.peers.process import Peer
    from lmc.cli.peers.exchange import PeerSetting

    import asyncio

    peer = Peer("fake", [sys.executable, str(Path(__file__).with_name("fake_peer.py"))], patience=20)
    try:
        asyncio.run(peer.open(PeerSetting("nowhere")))
        peer.pause()
        playing = contestants.PeerContestant(peer)
        told: list[str] = []
        sets = json.loads(data.read_text())
        for workload in SMALL_WORKLOADS:
            for found in take_turns([playing], workload, sets, 2, (True, False), told.append):
                run = found.median
                assert run.computed is not None and run.peak_bytes and run.calls == len(run.texts)
        assert told == []
    finally:
        peer.close()
    assert bench_peers.WORKLOADS == tuple(dict.fromkeys(workload.key for workload in SMALL_WORKLOADS))


def test_programs_of_a_peer():
    """Beside its requests, or alone; each with a table line of its own, and without what it cannot be kept to."""
    import asyncio

    from lmc.cli.peers.exchange import PeerSetting
    from lmc.cli.peers.peer_programs import peer_contestants
    from lmc.cli.peers.process import Peer

    class Bytes:
        def decode_bytes(self, ids):
            return bytes(ids)

    for word, names in (("programs", ["fake", "fake programs"]), ("only-programs", ["fake"])):
        peer = Peer("fake", [sys.executable, str(Path(__file__).with_name("fake_peer.py")), word], patience=20)
        try:
            asyncio.run(peer.open(PeerSetting("nowhere")))
            found = peer_contestants([peer], Bytes())
            assert [one.name for one in found] == names
            programs = found[-1]
            assert programs.cannot(BY_NAME["W1"]) is None and not programs.sequential
            assert programs.cannot(BY_NAME["W7 prefill"]) == "there is no program of it"
            without = "its programs have no regex"
            assert programs.cannot(BY_NAME["W4"]) == (without if word == "only-programs" else None)
            run = programs.run(BY_NAME["W6"], small_set(0)["W6"], parallel=True)
            assert run.texts == ("judge of dimensions, essay, merge_tokens, tail, tokens",) * 2
            assert (run.calls, run.prompt, run.output, run.computed, run.passes) == (2, 20, 4, 4, None) and run.seconds > 0
        finally:
            peer.close()


@pytest.mark.model
def test_programs_and_ids_do_the_same_work_on_the_real_model(model_folder):
    """What the ids of a question spell is tokenised to the same ids, so prompts and greedy texts are equal."""
    from lmc.cli.peers.contestants import OwnEngine
    from lmc.cli.peers.small_programs import OwnPrograms
    from lmc.embed import cache_folder
    from lmc.runtime.tokenizer import load_tokenizer

    encode = load_tokenizer(model_folder).encode
    data = {
        "W1": {"prefix": encode("Q: Name a tree.\nA: An oak.\n"), "suffix": [encode("Q: Name a river.\nA:"), encode("Q: Name a bird.\nA:")], "new": 4},
        "W4": {"prompts": [encode("A person as JSON:\n")], "regex": REGEX},
    }
    settings = {"model": "default", "cache": cache_folder(), "dry": False, "dtype": "float32", "kernels": "auto", "pool_tokens": 4096}
    own, programs = OwnEngine(settings), OwnPrograms(ROOT / "examples" / "peers", settings)
    for name, one in data.items():
        ids, program = (contestant.run(BY_NAME[name], one, parallel=True) for contestant in (own, programs))
        assert (ids.calls, ids.prompt, ids.output) == (program.calls, program.prompt, program.output), name
        assert name == "W3" or ids.texts == program.texts, name
        # A prefix that is computed for a fork belongs to no call: the engine's count is the same or one token more for each branch.
        assert 0 <= program.computed - own.fewest <= ids.calls and 0 <= ids.computed - own.fewest <= ids.calls, name


def test_the_page_says_what_there_is():
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    adapters = {path.stem.removesuffix("_peer") for path in (ROOT / "benchmarks" / "peers").glob("*_peer.py")}
    assert set(re.findall(r"^\| `(\w+)` \| .* \| .* \| .* \|$", page, re.M)) == adapters
    columns = " ".join(re.findall(r"^\| (`.*`) \| ", page.split("## The table")[1].split("**The roofline")[0], re.M))
    assert set(re.findall(r"`(.*?)`", columns)) == {column for column in re.split(r" {2,}", HEAD) if column} - {"workload"}
    options = set(re.findall(r"`(--[a-z-]+)", page)) | set(re.findall(r" (--[a-z-]+)", " ".join(re.findall(r"^\$ lmc bench peers.*$", page, re.M))))
    assert run_command(["bench", "peers", "--help"]) == 0 and options
    known = {name for option in bench_peers.peers_command.params for name in option.opts}
    assert options <= known
