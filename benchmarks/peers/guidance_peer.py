"""Guidance as a peer: text held to a regex or a JSON schema, on transformers, one request after the other.

Guidance takes text and not token ids: a prompt goes in as what its ids spell.  It jumps over forced text by itself, and keeps the keys
and values of what it ran last.
"""

import json
import os

from peer_protocol import BatchEngine, serve


class Guidance(BatchEngine):
    async def open(self, job):
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        import guidance
        import torch
        import transformers

        torch.set_num_threads(job["threads"])
        transformers.logging.set_verbosity_error()
        self.guidance = guidance
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(job["model"])
        # Else a begin token is put before each prompt that has none.
        self.tokenizer.bos_token = None
        model = transformers.AutoModelForCausalLM.from_pretrained(job["model"], torch_dtype=getattr(torch, job["dtype"])).eval()
        self.model = guidance.models.Transformers(model, self.tokenizer, echo=False)
        return {"engine": f"Guidance {guidance.__version__} on transformers {transformers.__version__}", "precision": job["dtype"],
                "can": ["free", "regex", "schema", "stop"], "notes": ["text in, one request at a time"]}

    async def reset(self):
        """What it keeps is replaced by the next request."""

    def run(self, asks):
        answers = []
        for ask in asks:
            try:
                answers.append(self.one(ask))
            except Exception as error:
                answers.append(error)
        return answers

    def check(self, ask):
        if ask.get("ignore_eos"):
            raise ValueError("Guidance cannot go on behind an end token")
        if ask.get("top_p", 1) < 1:
            raise ValueError("Guidance's `gen` draws from all tokens, and has no top_p")

    def one(self, ask):
        most, temperature = ask["max_tokens"], ask.get("temperature", 0.0)
        if ask.get("schema"):
            wanted = self.guidance.json("value", schema=json.loads(ask["schema"]), max_tokens=most, temperature=temperature)
        else:
            wanted = self.guidance.gen("value", regex=ask.get("regex"), max_tokens=most, stop=ask.get("stop") or None,
                                       temperature=temperature)
        text = (self.model + self.tokenizer.decode(ask["ids"]) + wanted)["value"]
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        return {"ids": ids, "text": text, "finish": "length" if len(ids) >= most else "stop", "computed": None, "cached": None}


if __name__ == "__main__":
    serve(Guidance())
