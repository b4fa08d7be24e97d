"""Runs in the virtual environment of `make bench-peers`: one engine's masks over the constraints that `lmc bench masks` sends.

    .bench-peers/constraints/bin/python benchmarks/peers/masks.py llguidance < job.json

The job is one JSON object: `tokens` (each token's bytes in base64, "" for control tokens), `end` (an id), and `constraints`, each with
`kind` ("regex" or "schema"), `text` and `ids`, the tokens of a text that it accepts.  For each constraint one line is printed as soon
as it is done: `compile` in milliseconds, `first` and `again`, microseconds of each mask in the first and in the second replay; or
`error`.  This script knows nothing of lmc.
"""

import base64
import json
import statistics
import sys
import time


class LlGuidance:
    def __init__(self, tokens, end):
        from llguidance import LLTokenizer, TokenizerWrapper
        from llguidance.numpy import allocate_token_bitmask

        class Vocabulary:
            eos_token_id, bos_token_id, special_token_ids = end, None, [i for i, data in enumerate(tokens) if not data]

            def __call__(self, text):
                raise AssertionError("forced text is not asked for")

        Vocabulary.tokens = tokens
        self.tokenizer = LLTokenizer(TokenizerWrapper(Vocabulary()), eos_token=end)
        self.row = allocate_token_bitmask(1, len(tokens))

    def compile(self, kind, text):
        from llguidance import LLMatcher

        # Masks alone are measured: without this, forced text is tokenised at each of them.
        self.grammar = '%llguidance {"no_forcing": true}\n'
        if kind == "regex":
            self.grammar += json.loads(LLMatcher.grammar_from_regex(text))["grammars"][0]["lark_grammar"]
        else:
            compact = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
            self.grammar += "start: %json " + json.dumps({**json.loads(text), "x-guidance": compact})
        self.restart()

    def restart(self):
        from llguidance import LLMatcher

        self.matcher = LLMatcher(self.tokenizer, self.grammar, log_level=0)
        if self.matcher.is_error():
            raise ValueError(self.matcher.get_error().split("\n")[0])

    def mask(self):
        from llguidance.numpy import fill_next_token_bitmask

        fill_next_token_bitmask(self.matcher, self.row)

    def advance(self, token):
        return self.matcher.consume_token(token)


class XGrammar:
    def __init__(self, tokens, end):
        import torch
        import xgrammar

        torch.set_num_threads(1)
        info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=[end])
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.row = xgrammar.allocate_token_bitmask(1, len(tokens))

    def compile(self, kind, text):
        if kind == "regex":
            self.grammar = self.compiler.compile_regex(text)
        else:
            self.grammar = self.compiler.compile_json_schema(text, any_whitespace=False, separators=(",", ":"))
        self.restart()

    def restart(self):
        import xgrammar

        self.matcher = xgrammar.GrammarMatcher(self.grammar)

    def mask(self):
        self.matcher.fill_next_token_bitmask(self.row)

    def advance(self, token):
        return self.matcher.accept_token(token)


class OutlinesCore:
    def __init__(self, tokens, end):
        import numpy
        from outlines_core import Vocabulary

        ids = {}
        for number, data in enumerate(tokens):
            if data:
                ids.setdefault(data, []).append(number)
        self.vocabulary = Vocabulary(end, ids)
        self.row = numpy.zeros((len(tokens) + 31) // 32, numpy.int32)

    def compile(self, kind, text):
        from outlines_core import Index
        from outlines_core.json_schema import build_regex_from_schema

        regex = text if kind == "regex" else build_regex_from_schema(text)
        self.index = Index(regex, self.vocabulary)
        self.restart()

    def restart(self):
        from outlines_core import Guide

        self.guide = Guide(self.index)

    def mask(self):
        self.guide.write_mask_into(self.row.ctypes.data, self.row.size, self.row.itemsize)

    def advance(self, token):
        self.guide.advance(token, return_tokens=False)
        return True


ENGINES = {"llguidance": LlGuidance, "xgrammar": XGrammar, "outlines-core": OutlinesCore}


def replay(engine, ids):
    """Microseconds of the mask before each token."""
    times = []
    for token in ids:
        started = time.perf_counter()
        engine.mask()
        times.append(1e6 * (time.perf_counter() - started))
        if not int(engine.row.reshape(-1)[token // 32]) >> token % 32 & 1 or not engine.advance(token):
            raise ValueError(f"token {len(times)} of an accepted text is not allowed")
    return times


def measure(engine, constraint):
    started = time.perf_counter()
    engine.compile(constraint["kind"], constraint["text"])
    compiled = 1e3 * (time.perf_counter() - started)
    first = replay(engine, constraint["ids"])
    again = []
    for _ in range(5):
        engine.restart()
        again.append(replay(engine, constraint["ids"]))
    return {"compile": compiled, "first": first, "again": [statistics.median(column) for column in zip(*again)]}


def main():
    job = json.load(sys.stdin)
    engine = ENGINES[sys.argv[1]]([base64.b64decode(data) for data in job["tokens"]], job["end"])
    for constraint in job["constraints"]:
        try:
            answer = measure(engine, constraint)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
