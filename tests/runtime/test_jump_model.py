"""Jump-forward on the default model: tokens are those of plain masking, in a third of the passes.  `lmc bench json` runs more of it."""

import pytest

from lmc.regex.build import compile_regex
from lmc.runtime.constraint import TokenConstraint
from lmc.runtime.context import Prompter
from lmc.runtime.engine import Engine
from lmc.runtime.model.load import load_model
from lmc.runtime.request import GenerateRequest, Sampling
from lmc.runtime.template import load_template
from lmc.runtime.tokenizer import load_tokenizer
from tests.runtime.test_jump import finish

pytestmark = pytest.mark.model

# Shaped like the object of SGLang's JSON benchmark, shorter.
CHARACTER = (r'\{\n    "name": "[\w\d\s]{1,16}",\n    "house": "(Gryffindor|Slytherin|Ravenclaw|Hufflepuff)",\n'
             r'    "blood status": "(Pure-blood|Half-blood|Muggle-born)",\n    "alive": "(Alive|Deceased)"\n\}')


def test_objects_have_the_tokens_of_plain_masking(model_folder):
    tokenizer = load_tokenizer(model_folder)
    prompter = Prompter(tokenizer, load_template(model_folder, tokenizer))
    constraint = None
    results, passes = {}, {}
    for jump in ("off", "exact"):
        engine = Engine(load_model(model_folder), tokenizer, slots=2048, jump=jump)
        constraint = constraint or TokenConstraint(compile_regex(CHARACTER), engine.index)
        requests = []
        for name, sampling in (("Harry Potter", Sampling()), ("Hermione", Sampling(temperature=0.7, seed=3)), ("Ron", Sampling())):
            prompt = prompter.prompt(prompter.append(prompter.new(), "user", f"Who is {name}?"), "assistant", heal=True)
            requests.append(GenerateRequest(prompt.ids, 120, heal=prompt.heal, constraint=constraint, sampling=sampling))
        results[jump] = finish(engine, *requests) if jump == "off" else [finish(engine, request)[0] for request in requests]
        passes[jump] = sum(result.usage.passes for result in results[jump])
    assert [r.ids for r in results["exact"]] == [r.ids for r in results["off"]]
    assert all(r.valid for r in results["off"]) and passes["exact"] <= 0.45 * passes["off"], passes
