"""`/metrics` in the form that Prometheus reads, `/openapi.json`, and the command."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lmc.cli.entry import run_command
from lmc.runtime.pulse import BOUNDS, Pulse

from tests.server.running import HTTP, LIMIT, running

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def served():
    with running(slots=4096) as one:
        yield one


def numbers(served) -> dict:
    answer = served.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {(sample.name, *sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(answer.text) for sample in family.samples}


def test_metrics_count_what_happened(served):
    before = numbers(served)
    answer = served.chat("Tell me about tea, please.", max_tokens=10)
    served.chat("Tell me about tea, please.", max_tokens=10)
    served.post(CHAT, {"model": "gpt-9", "messages": [{"role": "user", "content": "x"}]})
    served.get("/no/such/thing")
    after = numbers(served)

    def more(name, **labels):
        key = (name, *sorted(labels.items()))
        return after[key] - before.get(key, 0)

    assert more("lmc_requests_total", route=CHAT, status="200") == 2 and more("lmc_requests_total", route=CHAT, status="404") == 1
    assert more("lmc_requests_total", route="other", status="404") == 1 and "/no/such" not in served.get("/metrics").text
    assert more("lmc_tokens_total", kind="generated") == 2 * answer.usage.completion_tokens
    assert more("lmc_tokens_total", kind="prompt") + more("lmc_tokens_total", kind="cached") == 2 * answer.usage.prompt_tokens
    assert more("lmc_tokens_total", kind="cached") >= answer.usage.prompt_tokens - 1
    assert more("lmc_step_seconds_count") >= 10 and more("lmc_step_seconds_sum") > 0
    assert after["lmc_step_seconds_bucket", ("le", "+Inf")] == after["lmc_step_seconds_count",]
    assert sum(after["lmc_kv_slots", ("state", s)] for s in ("free", "cached", "used")) == after["lmc_kv_slots_total",] == 4096
    assert after["lmc_generations_open",] == after["lmc_requests_running",] == after["lmc_requests_waiting",] == 0
    assert 0 < after["lmc_cache_hit_rate",] < 1


def test_a_pulse_counts_steps_by_their_length():
    now = iter([0.0, 0.003, 10.0, 10.03, 20.0, 25.0, 100.0])
    pulse = Pulse(lambda: next(now))
    assert pulse.running_for() == 0.0
    pulse.begin(), pulse.end(), pulse.begin(), pulse.end(), pulse.begin()
    assert pulse.running_for() == 5.0
    pulse.end()
    buckets, seconds = pulse.cumulative()
    counts = dict(buckets)
    assert [counts[b] for b in (0.0025, 0.005, 0.025, 0.05, 10.0, BOUNDS[-1])] == [0, 1, 1, 2, 2, 3] and seconds == pytest.approx(80.033)


def test_the_document_of_the_interface(served):
    document = served.get("/openapi.json").json()
    assert {CHAT, "/v1/completions", "/v1/models", "/health", "/metrics"} <= set(document["paths"])
    body = document["components"]["schemas"]["ChatBody"]
    assert body["additionalProperties"] is False and set(body["required"]) == {"model", "messages"}


# The command.

def say(capsys, *words: str) -> tuple[int, str]:
    code = run_command(["serve", *words])
    return code, "".join(capsys.readouterr())


def test_other_machines_need_a_key(capsys):
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        code, said = say(capsys, "--dry", "--host", host)
        assert code == 2 and "no key is asked for" in said and "--no-key" in said


def test_keys_that_cannot_be_used(capsys, tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    code, said = say(capsys, "--dry", "--key-env", "NO_SUCH_KEY")
    assert code == 2 and "`NO_SUCH_KEY` holds no key" in said
    assert say(capsys, "--dry", "--keys", str(tmp_path / "none"))[0] == 2
    assert say(capsys, "--dry", "--keys", "x", "--no-key")[0] == say(capsys, "--dry", "--keys", "x", "--key-env", "Y")[0] == 2


def test_a_port_in_use_is_told_before_anything_is_loaded(capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, said = say(capsys, "--model", "no-such-model", "--port", str(port))
    assert code == 2 and "E0881" in said and f"the port {port} of 127.0.0.1 is in use" in said and "--port" in said


def test_an_address_that_is_none(capsys):
    code, said = say(capsys, "--dry", "--no-key", "--host", "no.such.host.invalid")
    assert code == 2 and "E0881" in said and "no address of this machine" in said


def test_programs_that_do_not_compile_are_told(capsys, tmp_path):
    (tmp_path / "bad.lmp").write_text("def f() -> str:\n    return x\n")
    code, said = say(capsys, "--dry", str(tmp_path / "bad.lmp"))
    assert code == 1 and "undefined name `x`" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_a_signal(number):
    with subprocess.Popen([sys.executable, "-c", "from lmc.cli import main; main()", "serve", "--dry", "--port", "0"], stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}) as process:
        try:
            line = process.stderr.readline()
            found = re.search(r"dry at (http://127\.0\.0\.1:\d+)/v1", line)
            assert found, line
            answer = HTTP.post(f"{found[1]}/v1/chat/completions", json={"model": "dry", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3})
            assert answer.status_code == 200
            process.send_signal(number)
            assert process.wait(LIMIT) == 0
            assert process.stderr.read() == "ending\n"
        finally:
            process.kill()
