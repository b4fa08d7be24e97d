"""Outlines as a peer: text held to a regex or a JSON schema, on transformers, in static batches.

Outlines takes text and not token ids: a prompt goes in as what its ids spell.  The index of a regex is built at its first use.
"""

import os

from peer_protocol import BatchEngine, serve


class Outlines(BatchEngine):
    async def open(self, job):
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        import outlines
        import torch
        import transformers
        from importlib.metadata import version

        torch.set_num_threads(job["threads"])
        transformers.logging.set_verbosity_error()
        self.outlines = outlines
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(job["model"], padding_side="left")
        # Else each prompt is put into the template as a message of a user.
        self.tokenizer.chat_template = None
        model = transformers.AutoModelForCausalLM.from_pretrained(job["model"], dtype=getattr(torch, job["dtype"])).eval()
        self.model, self.generators = outlines.from_transformers(model, self.tokenizer), {}
        return {"engine": f"Outlines {version('outlines')} on transformers {transformers.__version__}", "precision": job["dtype"],
                "can": ["regex", "schema"], "notes": ["text in, static batches, no cache from request to request"]}

    async def reset(self):
        """It keeps nothing."""

    def check(self, ask):
        if not ask.get("regex") and not ask.get("schema"):
            raise ValueError("Outlines is asked for constrained text only")
        if ask.get("temperature") or ask.get("stop") or ask.get("ignore_eos"):
            raise ValueError("this adapter takes the likeliest token, no stops, and ends where the text ends")

    def run(self, asks):
        groups = {}
        for place, ask in enumerate(asks):
            groups.setdefault((ask.get("regex"), ask.get("schema"), ask["max_tokens"]), []).append(place)
        answers = [None] * len(asks)
        for constraint, places in groups.items():
            try:
                found = self.group([asks[place] for place in places], *constraint)
            except Exception as error:
                # Such as a regex that Outlines does not know.
                found = [error] * len(places)
            for place, answer in zip(places, found):
                answers[place] = answer
        return answers

    def group(self, asks, regex, schema, most):
        prompts = [self.tokenizer.decode(ask["ids"]) for ask in asks]
        texts = self.generator(regex, schema).batch(prompts, max_new_tokens=most, do_sample=False)
        return [self.answer(ask, text, most) for ask, text in zip(asks, texts)]

    def answer(self, ask, text, most):
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        return {"ids": ids, "text": text, "finish": "length" if len(ids) >= most else "stop", "computed": len(ask["ids"]), "cached": 0}

    def generator(self, regex, schema):
        if (regex, schema) not in self.generators:
            from outlines.types import JsonSchema, Regex

            self.generators[regex, schema] = self.outlines.Generator(self.model, Regex(regex) if regex else JsonSchema(schema))
        return self.generators[regex, schema]


if __name__ == "__main__":
    serve(Outlines())
