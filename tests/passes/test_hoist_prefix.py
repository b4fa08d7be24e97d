"""What no round changes leaves its loops; results stay, and the engine computes a shared beginning once.

Each kind of sharing has one test on the IR and one on the engine's count of computed prompt tokens.
"""

import pytest

from lmc.ir.core import walk_ops
from lmc.ir.ops import Branches, ContextAppend, ContextNew, For, Fork, Map
from lmc.ir.printer import print_module
from lmc.ir.reader import read_module
from lmc.ir.verifier import verify
from lmc.passes import PASSES
from tests.passes.docstrings import module_text
from tests.passes.sharing import compiled, edges, shown

DOCUMENT = "The library is open from nine to five, and on Saturdays from ten to two. " * 3

QA = '''
def qa(document: str, question: str) -> str:
    system: "Answer from the document, in a few words."
    user: "Document: ${document}\\nQuestion: ${question}"
    assistant: a = gen(max_tokens=4, temperature=0.9)
    return a

def main(document: str, questions: list[str]) -> list[str]:
    return [qa(document, q) for q in questions]
'''
QUESTIONS = ["When does it open?", "And on Saturdays?", "Who works there?", "When does it close?"]

FEW_SHOT = '''
type Shot:
    question: str
    answer: str

def main(subjects: list[str], shots: list[Shot], questions: list[str]) -> list[list[str]]:
    return [[ask(s, shots, q) for q in questions] for s in subjects]

def ask(subject: str, shots: list[Shot], question: str) -> str:
    system: "You answer questions of an exam, as short as you can."
    user: "The following are questions about ${subject}, with their answers.\\n"
    for s in shots:
        user: "Q: ${s.question}\\nA: ${s.answer}\\n\\n"
    user: "Q: ${question}\\nA:"
    assistant: a = gen(max_tokens=2)
    return a
'''
SHOTS = [{"question": "1 + 1?", "answer": "2"}, {"question": "Capital of France?", "answer": "Paris"}]

NESTED = '''
def main(topic: str, tones: list[str], lengths: list[str]) -> list[list[str]]:
    system: "You write slogans."
    user: "The topic is ${topic}. "
    fork tone in tones:
        user: "Write one slogan, and nothing else. It should be ${tone}. "
        fork length in lengths:
            user: "Think about the length before you write: it is to be ${length}."
            assistant: s = gen(max_tokens=3)
        join s as ss
    join ss as all
    return all
'''

ARMS = '''
def main(claim: str) -> list[str]:
    system: "You argue."
    fork:
        branch pros:
            user: "Give the best argument you have for ${claim}"
            assistant: p = gen(max_tokens=3)
        branch cons:
            user: "Give the best argument you have against ${claim}"
            assistant: c = gen(max_tokens=3)
    join pros.p as p, cons.c as c
    return [p, c]
'''

CASES = {
    "a document common to many questions": (QA, [DOCUMENT, QUESTIONS]),
    "a header per subject": (FEW_SHOT, [["history", "law"], SHOTS, QUESTIONS]),
    "a chain of nested forks": (NESTED, ["tea", ["bold", "shy", "sad"], ["short", "long"]]),
    "arms that begin alike": (ARMS, ["tea is better than coffee"]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_engine_computes_what_is_shared_once(name, tmp_path):
    text, args = CASES[name]
    plain, hoisted = (shown(text, tmp_path, *args, level=level) for level in (0, 2))
    assert plain.same == hoisted.same and not plain.error
    # Of each prompt at least the last token is computed; nothing else twice.
    assert hoisted.computed <= edges(hoisted.prompts) + len(hoisted.prompts)
    assert hoisted.computed < sum(len(p[2]) for p in hoisted.prompts)


def ops_of(text: str, tmp_path, kind) -> list:
    return [op for op in walk_ops(compiled(text, tmp_path).module.function("main").body) if isinstance(op, kind)]


def appended(block) -> list[ContextAppend]:
    return [op for op in block.ops if isinstance(op, ContextAppend)]


def test_a_document_common_to_many_questions(tmp_path):
    main = compiled(QA, tmp_path).module.function("main")
    loop, = (op for op in main.body.ops if isinstance(op, Map))
    assert len(appended(main.body)) == 2 and len(appended(loop.body)) == 1
    assert loop.body.args[0] is appended(loop.body)[0].text and not any(isinstance(op, ContextNew) for op in loop.body.ops)


def test_a_header_per_subject_leaves_one_loop_and_the_system_text_two(tmp_path):
    main = compiled(FEW_SHOT, tmp_path).module.function("main")
    subjects, = (op for op in main.body.ops if isinstance(op, Map))
    questions, = (op for op in subjects.body.ops if isinstance(op, Map))
    assert [op.text.value for op in appended(main.body)] == [
        "You answer questions of an exam, as short as you can.", "The following are questions about "]
    assert any(isinstance(op, For) for op in subjects.body.ops) and not any(isinstance(op, For) for op in walk_ops(questions.body))


def test_a_chain_of_nested_forks(tmp_path):
    main = compiled(NESTED, tmp_path).module.function("main")
    outer, = (op for op in main.body.ops if isinstance(op, Fork))
    inner, = (op for op in outer.body.ops if isinstance(op, Fork))
    assert "It should be " in print_module(compiled(NESTED, tmp_path).module).split("lm.fork")[0]
    assert outer.context is appended(main.body)[-1].results[0]
    assert inner.context is appended(outer.body)[-1].results[0] and len(appended(inner.body)) == 1


def test_arms_that_begin_alike(tmp_path):
    main = compiled(ARMS, tmp_path).module.function("main")
    fork, = (op for op in main.body.ops if isinstance(op, Branches))
    assert appended(main.body)[-1].text.value == "Give the best argument you have "
    assert fork.context is appended(main.body)[-1].results[0] and [len(appended(arm)) for arm in fork.arms] == [1, 1]


# ------------------------------------------------------------------ what stays


def hoisted(body: str) -> str:
    module = read_module(module_text(body))
    after = PASSES["hoist_prefix"](module)
    verify(after)
    assert after is not module or print_module(after) == print_module(module)
    return print_module(after) if after is not module else ""


LOOP = '''func @f(%xs: list<str>, %d: dict<str, str>, %o: optional<str>) -> list<str> {{
  %r: list<str> = lm.map(%xs)[site = "0"] {{
  ^(%x: str):
    %c: context = context.new()
    {ops}
    %c_2: context, %v: str = lm.gen(%c_1)[role = raw, site = "0"]
    control.yield(%v)
  }}
  control.return(%r)
}}'''


@pytest.mark.parametrize("ops", [
    # It may fail, and there may be no round in which it would.
    '%t: str = pure.call(%d, "k")[function = "index"]\n    %c_1: context = context.append(%c, %t)[role = raw]',
    '%t: str = text.concat(%o, " and a long text behind it")\n    %c_1: context = context.append(%c, %t)[role = raw]',
    # Too little to be worth it.
    '%t: str = text.concat("Q: ", %x)\n    %c_1: context = context.append(%c, %t)[role = raw]',
    # Nothing that is sure to run goes on from it.
    '%c_1: context = context.append(%c, %x)[role = raw]\n    %e: context = context.append(%c, "nobody goes on from this")[role = raw]',
])
def test_what_is_not_moved(ops):
    assert not hoisted(LOOP.format(ops=ops))


@pytest.mark.parametrize("before, moved", [("pass", True), ('print("x")', False), ('if x == "":\n                continue', False)])
def test_nothing_moves_past_what_the_host_sees_or_what_ends_a_round(before, moved, tmp_path):
    text = f'''
    def main(xs: list[str]):
        for x in xs:
            {before}
            ask(x)

    def ask(x: str) -> str:
        system: "A text that is long enough to be moved."
        user: "${{x}}"
        assistant: a = gen(max_tokens=2)
        return a
    '''.replace("\n    ", "\n")
    main = compiled(text, tmp_path).module.function("main")
    assert any(isinstance(op, ContextAppend) for op in main.body.ops) is moved
    plain, after = (shown(text, tmp_path, ["a", "", "b"], level=level) for level in (0, 2))
    assert plain.same == after.same


NO_SYSTEM = '''
def ask(x: str) -> str:
    user: "first"
    system: "A text that is long enough to be moved."
    user: "${x}"
    assistant: a = gen(max_tokens=2)
    return a

def main(xs: list[str]) -> list[str]:
    %s
'''


@pytest.mark.parametrize("body", [
    "return [ask(x) for x in xs]",
    'user: "Hi"\n    fork x in xs:\n        system: "A text that is long enough to be moved."\n        user: "${x}"\n'
    "        assistant: a = gen(max_tokens=2)\n    join a as all\n    return all",
    'out = ["none"]\n    try:\n        out = [ask(x) for x in xs]\n    except Error as e:\n        out = [e.message, e.where]\n    return out',
])
@pytest.mark.parametrize("xs", [[], ["a", "b"]])
def test_a_context_that_cannot_be_fails_where_it_did(body, xs, tmp_path, monkeypatch):
    """Only where there is a round, with the place and the way that it has without the pass."""
    from lmc.runtime.context import ContextError, Prompter

    marker = Prompter.marker

    def without_late_system(self, before, role):
        if role == "system":
            raise ContextError("no system turn here")
        return marker(self, before, role)

    monkeypatch.setattr(Prompter, "marker", without_late_system)
    text = NO_SYSTEM.replace('    user: "first"\n', "") % body
    if body.startswith("user"):
        text = text.replace('        system: "A text', '        user: "A text').replace("def ask", "def unused")
    plain, after = (shown(text, tmp_path, xs, level=level) for level in (0, 2))
    assert plain.same == after.same
    assert bool(xs) == ("no system turn here" in plain.error + str(plain.value)) or body.startswith("user")


def test_contexts_of_rounds_that_may_be_compared_stay_apart(tmp_path):
    text = '''
    def main(xs: list[str]) -> bool:
        starts: list[context] = []
        fork x in xs:
            user: "A text that is long enough to be moved."
            assistant: a = gen(max_tokens=1)
        join here as ends
        fork x in xs:
            user: "A text that is long enough to be moved."
            mark = here
        join mark as starts
        return starts[0] == starts[1] or ends[0] == ends[1]
    '''
    for level in (0, 1, 2):
        assert shown(text, tmp_path, ["a", "b"], level=level).value is False
