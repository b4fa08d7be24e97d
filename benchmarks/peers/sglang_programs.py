"""The small workloads in SGLang's frontend language, as its users write them: what `examples/peers/*.lmp` say in ours.

    states = few_shot.run_batch(rows, temperature=0, backend=backend)
    states[0].ret_value                                                 ["…"], everything that this row has generated

A fork waits for its parent and not for its parent's siblings, so the tree is grown level by level: all that is known is asked for at once.
"""

import sglang as sgl

PERSON = (
    r"""\{\n  "name": "[A-Z][a-z]{1,12} [A-Z][a-z]{1,12}",\n  "age": [1-9][0-9]{0,2},\n  "occupation": "(engineer|teacher|doctor|"""
    r"""farmer|artist|pilot)",\n  "city": "[A-Z][a-z]{1,14}",\n  "year": (19|20)[0-9]{2},\n  "status": "(active|retired|unknown)"\n\}"""
)
LEVELS = 3


@sgl.function
def few_shot(s, prefix, question, tokens):
    s += prefix
    s += question
    s += sgl.gen("answer", max_tokens=tokens, ignore_eos=True)
    return [s["answer"]]


@sgl.function
def tree(s, root, branches, tokens):
    s += root
    level, thoughts = [s], []
    for _ in range(LEVELS):
        level = [child for parent in level for child in grow(parent, branches, tokens)]
        thoughts += level
    return [thought["thought"] for thought in thoughts]


def grow(parent, branches, tokens):
    children = parent.fork(len(branches))
    for child, branch in zip(children, branches):
        child += branch
        child += sgl.gen("thought", max_tokens=tokens, ignore_eos=True)
    return children


@sgl.function
def samples(s, question, count, tokens):
    s += question
    drawn = s.fork(count)
    drawn += sgl.gen("answer", max_tokens=tokens, temperature=0.7, ignore_eos=True)
    return [one["answer"] for one in drawn]


@sgl.function
def extract(s, document):
    s += document
    s += sgl.gen("person", max_tokens=200, regex=PERSON)
    return [s["person"]]


@sgl.function
def chat(s, turns, tokens):
    for number, turn in enumerate(turns):
        s += turn
        s += sgl.gen(f"reply {number}", max_tokens=tokens, ignore_eos=True)
    return [s[f"reply {number}"] for number in range(len(turns))]


@sgl.function
def judge(s, essay, dimensions, tail, tokens, merge_tokens):
    s += essay
    judges = s.fork(len(dimensions))
    for one, dimension in zip(judges, dimensions):
        one += dimension["question"]
        one += sgl.gen("judgement", max_tokens=tokens, ignore_eos=True)
    judges.join()
    for dimension, judgement in zip(dimensions, s["judgement"]):
        s += dimension["heading"] + judgement
    s += tail
    s += sgl.gen("merged", max_tokens=merge_tokens, ignore_eos=True)
    return [*s["judgement"], s["merged"]]


PROGRAMS = {program.func.__name__: program for program in (few_shot, tree, samples, extract, chat, judge)}
