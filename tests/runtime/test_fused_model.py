"""A template on the default model in deterministic float32: the ids of its pieces are those of requests that stand alone."""

import pytest

from lmc.runtime.model.load import load_model
from lmc.runtime.template import load_template
from lmc.runtime.tokenizer import load_tokenizer
from tests.runtime.test_fused import Pieces, assert_same, both

pytestmark = pytest.mark.model

# Constrained, cut by a stop inside a token, and drawn from a seed; the texts between begin and end where tokens may be longer.
FORM = '''
def f(who: str) -> str:
    user: "Describe ${who} in a form."
    assistant:
        "name: ${name := gen(str(regex="[A-Z][a-z]{2,8}"))}\\nage: ${age := gen(int)}"
        "\\nlikes: ${likes := gen(max_tokens=12, stop=".")}. Mood: ${mood := gen("glad" | "sad" | "calm", temperature=0.9)}"
    return "${name}, ${age}, ${likes}, ${mood}"
'''


def test_fused_and_unfused_have_the_same_ids(model_folder, tmp_path):
    tokenizer = load_tokenizer(model_folder)
    template = load_template(model_folder, tokenizer)

    def session():
        return Pieces(load_model(model_folder, deterministic=True), tokenizer, template, slots=512)

    (plain, fused), (alone, together) = both(FORM, tmp_path, "a sailor", session=session)
    assert fused.error is None
    assert_same(plain, fused)
    assert together.asked == alone.asked and (alone.stats.requests, together.stats.requests) == (4, 1)
    assert [g.ids for g in together.given] == [g.ids for g in alone.given] and all(g.ids for g in alone.given)
