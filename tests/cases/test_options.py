"""Case H-05: an option that is accepted and has no effect.  Each option of a `gen` changes what a program gives, from its text to its value."""

import pytest

from tests.runtime.programs import TOKENS, dry_session, program_of, run

PROGRAM = '''
def main() -> str:
    raw: "Once upon a time there was a "
    raw: a = gen({})
    return a
'''
GREEDY, DRAWN = "max_tokens=60", "max_tokens=60, temperature=1.0"
#: What is written there, what is written beside it, and what it must change.
OPTIONS = [
    (GREEDY, "max_tokens=3"), (GREEDY, "min_tokens=60"), (GREEDY, 'stop="e"'), (GREEDY, 'stop=["zzz", "a"]'), (GREEDY, "ignore_eos=True"),
    (GREEDY, "heal=False"), (GREEDY, "temperature=1.0"), (DRAWN, "seed=12"), (DRAWN, "top_p=0.1"), (DRAWN, "top_k=1"), (DRAWN, "min_p=0.9"),
    (GREEDY, "frequency_penalty=2.0"), (GREEDY, "presence_penalty=2.0"), (GREEDY, "repetition_penalty=3.0"),
    (GREEDY, f"logit_bias={{{TOKENS.encode(' the')[0]}: 100.0}}"), (GREEDY, 'regex=r"[xyz]{3}"'), (GREEDY, 'schema="""{"type": "integer"}"""'),
    (GREEDY, 'grammar=r"""start: "(" start ")" | "x" """'),
]


def given(options: str, folder):
    ended = run(program_of(PROGRAM.format(options), folder), dry_session(), "main")
    assert ended.error is None
    return ended


@pytest.mark.parametrize("base, option", OPTIONS, ids=lambda text: text.partition("=")[0])
def test_each_option_changes_the_value(base, option, tmp_path):
    if option.startswith("grammar"):
        pytest.importorskip("llguidance")
    # One that is written twice counts where it stands last in this list, so the base's own is left out.
    kept = [one for one in base.split(", ") if one.partition("=")[0] != option.partition("=")[0]]
    assert given(", ".join([*kept, option]), tmp_path).value != given(base, tmp_path).value


def test_what_is_recorded_and_streamed_is_asked_for(tmp_path):
    plain, recorded, streamed = (given(f"{GREEDY}{more}", tmp_path) for more in ("", ", logprobs=2", ", stream=True"))
    assert plain.value == recorded.value == streamed.value
    assert not plain.report.logprobs and len(recorded.report.logprobs[0].tokens[0].top) == 2
    assert not plain.streamed and len(streamed.streamed) > 5 and "".join(text for _, text in streamed.streamed) == plain.value
