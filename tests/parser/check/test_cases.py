"""Real failures of this field (`cases.jsonl`) that a checker prevents: J-03, J-06, H-05."""

import pytest

from lmc.diagnostics import Severity
from tests.parser.check.program import checked, codes

# J-03: one mistake a file; (program, code, line, column, a word of the help).
MISTAKES = {
    "undefined variable in a branch that rarely runs": (
        'def main(n: int) -> str:\n    if n > 1000:\n        return answr\n    answer = "a"\n    return answer\n', "E0201", 3,
        16, None),
    "misspelt variable": ('def main(review: str):\n    user: "${reviw}"\n    assistant: gen()\n', "E0201", 2, 14, "review"),
    "function named, not called": (
        'def rules() -> str:\n    return "r"\ndef main():\n    user: "${rules}"\n    assistant: gen()\n', "E0209", 4, 14,
        "rules(…)"),
    "wrong number of arguments": ('def f(a: int) -> int:\n    return a\ndef main() -> int:\n    return f(1, 2)\n', "E0302", 4,
                                  17, "f(a)"),
    "use before assignment in a loop": (
        'def main(xs: list[int]) -> int:\n    for x in xs:\n        total = total + x\n    return 1\n', "E0203", 3, 17, None),
    "extern that returns nothing, in a prompt": (
        'extern def log(m: str) -> None\ndef main():\n    user: "${log("x")}"\n    assistant: gen()\n', "E0310", 3, 14,
        "no value"),
    "extern that returns a record, in a prompt": (
        'type R:\n    a: int\nextern def get(m: str) -> R\ndef main():\n    user: "${get("x")}"\n    assistant: gen()\n',
        "E0310", 5, 14, "json"),
    "unknown option of gen": ('def main():\n    user: "Q"\n    assistant: gen(max_token=5)\n', "E0407", 3, 20, "max_tokens"),
    "a context in a prompt": ('def main():\n    user: "Q"\n    user: " ${here}"\n    assistant: gen()\n', "E0310", 3, 15,
                              "resume"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_one_mistake_is_one_located_error(tmp_path, name):
    text, code, line, column, help = MISTAKES[name]
    result = checked(tmp_path, text)
    assert codes(result) == [code]
    found = result.diagnostics[0]
    assert found.severity is Severity.ERROR and (found.span.line, found.span.column) == (line, column)
    assert help is None or help in found.help


def test_near_names_are_suggested_only_where_near(tmp_path):
    result = checked(tmp_path, "def main(alpha: int) -> int:\n    return zzz + alpha\n")
    assert "similar" not in result.diagnostics[0].help and "alpha" not in result.diagnostics[0].help


def test_a_loop_that_only_the_model_ends_is_warned_about(tmp_path):
    text = ('def main() -> str:\n    user: "Say done."\n    while True:\n        assistant: x = gen()\n'
            '        if x == "done":\n            break\n    return x\n')
    assert codes(checked(tmp_path, text)) == ["W106"]
    assert codes(checked(tmp_path, text.replace("while True:", "while True:   # lmc: allow W106"))) == []
    assert codes(checked(tmp_path, text.replace("while True:", "for i in range(5):").replace("return x", 'return "x"'))) == []


@pytest.mark.parametrize("option",
                         ["temperature=0.5", "top_p=0.9", "top_k=5", "min_p=0.1", "seed=3", "frequency_penalty=0.1",
                          "presence_penalty=0.1",
                                    "repetition_penalty=1.1", "logit_bias={5: 1.0}", "logprobs=2", "heal=False",
                                    "ignore_eos=True",
                                    "stream=True", "max_tokens=3", "min_tokens=1", 'stop="x"', 'stop=["x", "y"]', 'regex=r"a+"'])
def test_each_option_is_known_and_its_misspelling_is_not(tmp_path, option):
    text = 'def main():\n    user: "Q"\n    assistant: gen({})\n'
    assert codes(checked(tmp_path, text.format(option))) == []
    name = option.partition("=")[0]
    result = checked(tmp_path, text.format(option.replace(name, name + name[-1], 1)))
    assert codes(result) == ["E0407"]
    assert f"`{name}`" in result.diagnostics[0].help
