"""Peers run the same programs as we do: with our own engine behind the peers' protocol, prompts, tokens and results are the same."""

import asyncio
import json
import sys
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from lmc.cli.entry import run_command
from lmc.cli.peers.exchange import PeerAnswer, PeerError, PeerSetting
from lmc.cli.peers.process import Peer
from lmc.cli.workloads import open_peers
from lmc.cli.workloads.data import Data
from lmc.cli.workloads.equal_work import EqualWork, equal_work
from lmc.cli.workloads.own_run import Lmc
from lmc.cli.workloads.peer_contender import Client, PeerContender, Spelling
from lmc.cli.workloads.peer_session import PeerSession, taken
from lmc.cli.workloads.refusals import Refusals
from lmc.cli.workloads.results import HEAD, lines
from lmc.cli.workloads.rounds import median, take_turns
from lmc.cli.workloads.table import QUICK_TOKENS, WORKLOADS, quick
from lmc.diagnostics import RunError
from lmc.runtime.dry_text import dry_tokenizer
from lmc.runtime.request import Finish, GenerateRequest, Sampling
from lmc.runtime.template import dry_template
from lmc.runtime.token_sets import TokenSets

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "workloads"
SAMPLE = Data(EXAMPLES / "sample")
BY_NAME = {workload.name: workload for workload in WORKLOADS}
SAMPLED = {"tree_of_thought_30", "tree_of_thought_39", "self_consistency", "rag"}
LONG = {"tree_of_thought_30", "tree_of_thought_39", "multi_turn_chat_long"}
STOPPED = {"react_replay", "react_agent", "generative_agents", "skeleton_of_thought", "llm_judge"}
TOKENIZER = dry_tokenizer()
SPELLING = Spelling(TOKENIZER, dry_template(TOKENIZER), 8192)
DRY = {"model": "", "cache": None, "dry": True, "dtype": "float32"}


def command(*words: str) -> list[str]:
    return [sys.executable, str(Path(__file__).with_name("own_peer.py")), *words]


@contextmanager
def opened(*words: str):
    peer = Peer("own", command(*words), patience=60)
    try:
        asyncio.run(peer.open(PeerSetting("", "float32")))
        yield peer
    finally:
        peer.close()


@pytest.fixture(scope="module")
def peer():
    with opened() as found:
        yield found


def rows(name: str, count: int):
    return list(islice(BY_NAME[name].rows(SAMPLE), count))


def contender(peer: Peer, client: Client = Client.PARALLEL) -> PeerContender:
    return PeerContender(peer, client, EXAMPLES, SPELLING)


def alone(player: PeerContender, workload, given, data):
    player.resume()
    return player.run(workload, given, data)


def both(peer: Peer, name: str, count: int):
    """Our outcome, and the peer's."""
    found = take_turns([Lmc(EXAMPLES, DRY), contender(peer)], BY_NAME[name], rows(name, count), SAMPLE, 1, pytest.fail)
    return found["lmc"][0], found["own"][0]


@pytest.mark.parametrize("name", BY_NAME)
def test_the_same_work(peer, name):
    count = 1 if name in LONG else 2
    ours, theirs = both(peer, name, count)
    assert (theirs.failed, theirs.errors, theirs.programs) == (0, (), count)
    same = equal_work(theirs, ours)
    assert theirs.calls == ours.calls or name == "react_agent"
    if name in SAMPLED:
        # Seeds are cut to what all engines take, so other texts are drawn; what was not drawn is the same.
        assert same.same_prompts >= count
    elif name == "json_fields":
        # A number ends here also where the text behind it begins, which no peer is told.
        assert same.same_prompts >= same.prompts - 2 > 0
    else:
        # Of tokens that a stop has cut this peer does not tell.
        assert replace(same, output=ours.output) == EqualWork(len(ours.asked), len(ours.asked), count, count, ours.output, ours.output)
        assert same.output == ours.output or name in STOPPED and same.output < ours.output
        assert (theirs.prompt, theirs.fewest) == (ours.prompt, ours.fewest)
    assert theirs.computed >= theirs.fewest and theirs.passes > 0


class Crowd:
    """A peer that counts how many generations are under way at the most."""

    def __init__(self, peer: Peer):
        self.peer, self.now, self.most = peer, 0, 0

    def __getattr__(self, name):
        return getattr(self.peer, name)

    async def generate(self, ask):
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await self.peer.generate(ask)
        finally:
            self.now -= 1


def test_a_sequential_client_makes_one_call_at_a_time_in_each_row(peer):
    workload, given = BY_NAME["llm_judge"], rows("llm_judge", 2)
    found = {}
    for client, most in ((Client.PARALLEL, 12), (Client.SEQUENTIAL, 2)):
        crowd = Crowd(peer)
        found[client] = alone(contender(crowd, client), workload, given, SAMPLE)
        assert crowd.most == most
    assert equal_work(found[Client.SEQUENTIAL], found[Client.PARALLEL]).same_rows == 2
    assert [outcome.contender for outcome in found.values()] == ["own", "own seq"]


def test_a_sequential_client_is_left_out_where_it_would_be_the_same(peer):
    refusals, clients = Refusals(), [contender(peer, client) for client in Client]
    assert [refusals.able(clients, BY_NAME[name]) for name in ("mmlu", "llm_judge", "rag")] == [clients[:1], clients, clients[:1]]
    assert list(refusals.lines()) == ["own seq does not run mmlu, rag: no two calls of a row stand side by side"]


def test_a_peer_with_programs_of_its_own_language_only_is_left_out():
    fake = Peer("fake", [sys.executable, str(ROOT / "tests" / "peers" / "fake_peer.py"), "only-programs"], patience=20)
    try:
        asyncio.run(open_peers._open(fake, PeerSetting(""), SPELLING))
        assert contender(fake).cannot(BY_NAME["mmlu"]) == "it runs programs of its own language only"
        assert asyncio.run(fake.stats()).generated == 0, "and is not warmed up by requests"
    finally:
        fake.close()


def test_which_workloads_ask_for_several_things_at_once():
    from tests.test_cli_bench_workloads import SHAPES

    assert {name for name, (_, at_once, *_) in SHAPES.items() if at_once > 1} == {w.name for w in WORKLOADS if w.side_by_side}


def test_what_a_peer_cannot_do_is_said_and_left_out(peer, monkeypatch):
    monkeypatch.setattr(peer, "ready", replace(peer.ready, can=frozenset({"ids", "free", "stop", "seed"})))
    reasons = {name: contender(peer).cannot(workload) for name, workload in BY_NAME.items()}
    assert {name for name, reason in reasons.items() if reason == "it cannot be kept to a regex"} == {
        "react_agent", "json_object", "json_fields", "json_character"}
    assert reasons["hellaswag"] == "it gives no log-probabilities of a prompt and keeps no regex"
    chats = {"multi_turn_chat_short", "multi_turn_chat_long"}
    assert {name for name, reason in reasons.items() if reason == "it cannot pass over end tokens"} == chats
    assert reasons["mmlu"] is None and reasons["tree_of_thought_39"] is None


def test_a_peer_of_constrained_text_alone(peer, monkeypatch):
    """Each reason is one line, however many workloads it is about."""
    monkeypatch.setattr(peer, "ready", replace(peer.ready, can=frozenset({"regex", "schema"})))
    refusals = Refusals()
    assert {name for name, workload in BY_NAME.items() if refusals.able([contender(peer)], workload)} == {
        "hellaswag", "json_object", "json_fields", "json_character"}
    (line,) = refusals.lines()
    assert line.startswith("own does not run mmlu, react_replay, ") and line.endswith(": it writes constrained text only")


def test_a_choice_without_log_probabilities_is_one_of_the_options(peer, monkeypatch):
    monkeypatch.setattr(peer, "ready", replace(peer.ready, can=peer.ready.can - {"score"}))
    outcome = alone(contender(peer), BY_NAME["hellaswag"], rows("hellaswag", 2), SAMPLE)
    assert outcome.failed == 0 and outcome.output > 0
    for value, row in zip(outcome.values, rows("hellaswag", 2)):
        assert json.loads(value) in row["endings"]


def test_other_texts_are_counted():
    with opened("other") as peer:
        ours, theirs = both(peer, "multi_turn_chat_short", 2)
    same = equal_work(theirs, ours)
    assert (same.same_rows, same.rows) == (0, 2) and same.output == same.other_output, "the length is asked for"
    assert same.same_prompts == 2 < same.prompts, "first turns hold nothing generated"
    assert same.text("a", "b").startswith("a: 2 of 8 prompts and 0 of 2 results as b's, ")


def test_a_peer_that_ends_is_told_and_left_out():
    told = []
    with opened("die") as peer:
        assert asyncio.run(peer.generate(_ask())).ids
        players = [Lmc(EXAMPLES, DRY), contender(peer)]
        found = take_turns(players, BY_NAME["mmlu"], rows("mmlu", 1), SAMPLE, 2, told.append)
        assert [len(outcomes) for outcomes in found.values()] == [2] and "own" not in found
        assert "ended with exit code 7" in told[0] and "out of luck" in told[0] and len(told) == 1
        assert players[1].cannot(BY_NAME["mmlu"]) == "its process has ended"


def _ask():
    from lmc.cli.peers.exchange import PeerAsk

    return PeerAsk((65, 66), 2)


@pytest.mark.parametrize("name", ["llm_judge", "json_object", "multi_turn_chat_long", "mmlu"])
def test_quick_is_the_same_calls_on_less_text_for_all(peer, name):
    workload, count = BY_NAME[name], 2
    given = list(islice(quick(workload).rows(SAMPLE), count))
    found = take_turns([Lmc(EXAMPLES, DRY), contender(peer)], quick(workload), given, SAMPLE, 1, pytest.fail)
    ours, theirs, whole = found["lmc"][0], found["own"][0], alone(contender(peer), workload, rows(name, count), SAMPLE)
    assert (ours.failed, theirs.failed) == (0, 0) and ours.asked == theirs.asked and ours.values == theirs.values
    assert ours.calls == theirs.calls == whole.calls and len(theirs.asked) == len(whole.asked)
    if name == "multi_turn_chat_long":
        assert theirs.output == ours.output == whole.calls * QUICK_TOKENS < whole.output
    else:
        assert theirs.output == whole.output, "short texts, and what a constraint holds, keep their length"


def test_a_run_begins_with_an_empty_cache(peer):
    found = take_turns([contender(peer)], BY_NAME["rag"], rows("rag", 2), SAMPLE, 2, pytest.fail)["own"]
    assert found[0].computed == found[1].computed


def test_the_median_of_rounds(peer):
    outcome = alone(contender(peer), BY_NAME["mmlu"], rows("mmlu", 1), SAMPLE)
    runs = [replace(outcome, seconds=seconds, passes=int(seconds), peak_bytes=10 - int(seconds)) for seconds in (3.0, 1.0, 2.0, 8.0)]
    found = median(runs)
    assert (found.seconds, found.passes, found.peak_bytes) == (2.5, 2, 9)


def test_the_table_compares_with_the_fastest_peer(peer):
    ours, theirs = both(peer, "mmlu", 2)
    table = list(lines([replace(ours, seconds=2.0), replace(theirs, seconds=4.0), replace(theirs, contender="slow", seconds=8.0, passes=None,
                                                                                          computed=None, peak_bytes=None)]))
    assert [line.split()[-1] for line in table[:3]] == ["2.00", "1.00", "0.50"] and max(map(len, table[:3])) == len(HEAD)
    assert table[3] == "    own: 2 of 2 prompts and 2 of 2 results as lmc's, 2 tokens for 2"
    refusing = replace(theirs, contender="outlines", seconds=0.01, failed=2)
    ours, theirs, refused, *_ = lines([replace(ours, seconds=2.0), replace(theirs, seconds=4.0), refusing])
    assert [line.split()[-1] for line in (ours, theirs, refused)] == ["2.00", "1.00", "0.00"], "one that fails at once is not the fastest"


class TestTaken:
    """A peer's tokens are taken as if we had drawn them."""

    SETS = TokenSets(TOKENIZER, TOKENIZER.size)

    def take(self, text: str, finish: str, stops=(), most: int = 20):
        request = GenerateRequest((65,), most, stops=stops)
        return taken(request, PeerAnswer(tuple(TOKENIZER.encode(text)), text, finish, 1, 0), self.SETS, 8192)

    def test_a_stop_cuts_whatever_the_peer_leaves_in_place(self):
        found = self.take("one. two", "stop", (".",))
        assert (found.text, found.finish, found.stop) == ("one", Finish.STOP, ".")

    def test_a_stop_that_the_peer_has_taken_off(self):
        found = self.take("one", "stop", (".",))
        assert (found.text, found.finish, found.valid) == ("one", Finish.EOS, True)

    def test_no_more_room(self):
        assert self.take("one", "length").finish is Finish.LENGTH
        assert self.take("abc", "length", most=3).finish is Finish.LENGTH
        assert self.take("one", "eos").finish is Finish.EOS


def test_what_the_protocol_has_no_word_for_is_an_error(peer):
    session = PeerSession(peer, SPELLING.tokenizer, SPELLING.template, limit=8192)
    for request, word in ((GenerateRequest((65,), 2, sampling=Sampling(top_k=3)), "`top_k`"), (GenerateRequest((65,), 2, heal=b"x"), "healing"),
                          (GenerateRequest((65,), 2, logprobs=1), "`logprobs`")):
        with pytest.raises(RunError, match=word):
            asyncio.run(session.generate(request))


def test_peers_are_opened_once_and_told(monkeypatch):
    told = []

    def start(name, installed, **more):
        if name == "vllm":
            raise PeerError("the peer `vllm` is not installed in nowhere")
        return Peer(name, [sys.executable, str(ROOT / "tests" / "peers" / "fake_peer.py")], patience=60)

    monkeypatch.setattr(open_peers, "start_peer", start)
    with open_peers.opened_peers(("vllm", "llama"), None, PeerSetting("", "float32"), SPELLING, told.append) as peers:
        assert [peer.name for peer in peers] == ["llama"]
    assert peers[0].ended and told[0] == "vllm: left out: the peer `vllm` is not installed in nowhere"
    assert told[1].startswith("llama: fake 1.0, float32, ready after ")


def test_a_peer_that_cannot_go_on_behind_an_end_is_warmed_up_all_the_same(monkeypatch):
    fake = [sys.executable, str(ROOT / "tests" / "peers" / "fake_peer.py"), "no-ignore-eos"]
    monkeypatch.setattr(open_peers, "start_peer", lambda name, installed: Peer(name, fake, patience=60))
    told = []
    with open_peers.opened_peers(("guidance",), None, PeerSetting("", "float32"), SPELLING, told.append) as (peer,):
        peer.resume()
        assert asyncio.run(peer.stats()).generated > 0
    assert told[0].startswith("guidance: fake 1.0, float32, ready after ")


def test_peers_need_a_model(capsys):
    assert run_command(["bench", "workloads", "--dry", "--peers", "vllm"]) == 2
    assert "peers need the files of a model" in capsys.readouterr().err
    assert run_command(["bench", "workloads", "--peers", "gpt"]) == 2
    assert "there is no peer `gpt`" in capsys.readouterr().err


@pytest.mark.model
def test_the_command_beside_a_peer(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(open_peers, "start_peer", lambda name, installed: Peer(name, command(), patience=120))
    out = tmp_path / "out.json"
    words = ["bench", "workloads", "--peers", "llama", "--clients", "both", "--rows", "1", "--rounds", "1", "--only", "mmlu", "--only", "json_object",
             "--out", str(out)]
    assert run_command(words) == 0
    data = json.loads(out.read_text())
    assert [(o["workload"], o["contender"]) for o in data["outcomes"]] == [
        ("mmlu", "lmc"), ("mmlu", "llama"), ("json_object", "lmc"), ("json_object", "llama")]
    for ours, theirs in (data["outcomes"][:2], data["outcomes"][2:]):
        assert theirs["asked"] == ours["asked"] and theirs["values"] == ours["values"]
    shown = capsys.readouterr().out
    assert "    llama: 1 of 1 prompts and 1 of 1 results as lmc's" in shown and "llama seq does not run mmlu, json_object: " in shown
    assert shown.endswith(" seconds in all, the start of the peers not counted\n")
    assert data["engines"]["llama"] == "lmc itself" and len(data["rounds"]) == 4
