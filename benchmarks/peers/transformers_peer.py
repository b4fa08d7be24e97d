"""Hugging Face transformers as a peer: static batches, and a prefix cache passed along by hand, as a careful user would write it.

    rows that come together      A B C D x1 x2        A B C D y1 y2        A B C D z1
    what they share              A B C D              computed once, kept
    one batch                    [cache of A B C D] + x1 x2 / y1 y2 / z1, padded on the left, then token by token

Every row's keys and values are kept after its last token (within `pool_bytes`, the oldest go first), so that a later turn or level goes
on from them.  Greedy and sampled text, and scores, whose options share their prompt in the same way; no constraints (that is Outlines'
and Guidance's work).
"""

import os

from peer_protocol import BatchEngine, serve

# Rows of one batch: more of them fill the memory with copies of the cache.
MOST_ROWS = 32
# Fewer shared tokens are not worth a forward pass of their own.
LEAST_SHARED = 16
# Instructions, examples, a question: prompts that share more levels are rare, and what was kept may be thrown out at once.
MOST_LEVELS = 4


class Kept:
    """A row's tokens, and its keys and values: for each layer (kv_heads, tokens, head_dim)."""

    def __init__(self, ids, layers):
        self.ids, self.layers = ids, layers
        self.bytes = sum(part.numel() * part.element_size() for pair in layers for part in pair)


class Transformers(BatchEngine):
    async def open(self, job):
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        import torch
        import transformers

        torch.set_num_threads(job["threads"])
        transformers.logging.set_verbosity_error()
        self.torch = torch
        self.model = transformers.AutoModelForCausalLM.from_pretrained(job["model"], dtype=getattr(torch, job["dtype"])).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(job["model"])
        ends = self.model.generation_config.eos_token_id
        self.ends = set(ends if isinstance(ends, list) else [ends])
        self.room, self.kept, self.passes = job["pool_bytes"], [], 0
        return {"engine": f"transformers {transformers.__version__}", "precision": job["dtype"], "can": ["ids", "free", "ignore_eos", "seed", "stop", "score"],
                "notes": [f"static batches of at most {MOST_ROWS} rows, prefix cache by hand, torch {torch.__version__}"]}

    async def reset(self):
        self.kept = []

    def check(self, ask):
        if ask.get("regex") or ask.get("schema"):
            raise ValueError("transformers has no constrained generation")

    def run(self, asks):
        return in_batches(self.batch, asks)

    def run_scores(self, asks):
        return in_batches(self.score_batch, asks)

    def batch(self, asks):
        with self.torch.inference_mode():
            cache, mask, logits, computed = self.read([ask["ids"] for ask in asks], [1] * len(asks))
            return self.decode(asks, cache, mask, logits[:, -1], computed)

    def score_batch(self, asks):
        # Nothing is asked of what comes after a last token.
        rows = [ask["ids"][:-1] for ask in asks]
        with self.torch.inference_mode():
            _, _, logits, computed = self.read(rows, [max(1, len(ask["ids"]) - ask["start"]) for ask in asks])
            return [self.scored(*one) for one in zip(asks, logits, computed)]

    def scored(self, ask, logits, computed):
        """logits: (columns, vocab); the last columns stand before the tokens that are scored."""
        ids = self.torch.tensor(ask["ids"][ask["start"] :], dtype=self.torch.long)
        found = logits[len(logits) - len(ids) :].float().log_softmax(-1).gather(1, ids[:, None])[:, 0]
        return {"logprobs": found.tolist(), "computed": computed, "cached": len(ask["ids"]) - 1 - computed}

    def read(self, rows, fresh):
        """Prompts as a batch, what they share computed once; `fresh` is how many of each one's last tokens are computed in any case.

        Gives the cache, the mask of its columns (rows, columns), logits of the last columns (rows, most of `fresh`, vocab), and how many
        tokens were computed for each row.
        """
        heads = [ids[: len(ids) - count] for ids, count in zip(rows, fresh)]
        before = [self.found(head) for head in heads]
        computed = self.keep_shared(heads)
        cache, mask, logits, lengths = self.extend(rows, heads, max(fresh))
        # What was computed once for several is counted once, with the first of them.
        own = [len(ids) - len_before for ids, len_before in zip(rows, before)]
        total = computed + sum(len(ids) - found for ids, found in zip(rows, lengths))
        return cache, mask, logits, self.shares(own, total)

    def shares(self, own, total):
        """What each row would have computed alone, cut so that the sum is what was computed."""
        parts = []
        for part in own:
            parts.append(min(part, total))
            total -= parts[-1]
        parts[-1] += total
        return parts

    def found(self, head):
        return max((common(head, kept.ids) for kept in self.kept), default=0)

    def keep_shared(self, heads):
        """Computes what prompts share and nobody has, each such prefix once; gives how many tokens that were.

        Examples of all prompts come first, then what some of them share behind these: a batch for each level.
        """
        computed = 0
        for _ in range(MOST_LEVELS):
            groups = {}
            for head in heads:
                least = self.found(head) + LEAST_SHARED
                if len(head) >= least:
                    groups.setdefault(tuple(head[:least]), []).append(head)
            shared = [group[0][: min(common(group[0], other) for other in group)] for group in groups.values() if len(group) > 1]
            if not shared:
                break
            cache, mask, _, lengths = self.extend(shared, [ids[:-1] for ids in shared], 1)
            for number, ids in enumerate(shared):
                self.keep(ids, cache, mask, number)
            computed += sum(len(ids) - found for ids, found in zip(shared, lengths))
        return computed

    def extend(self, rows, heads, last):
        """A batch on what is kept of each row's head.

        Gives the cache, the mask of its columns (rows, columns), logits of the last columns (rows, last, vocab), and how long a prefix of
        each row was found.  Columns: what was kept, right-aligned; then what is new, right-aligned.
        """
        torch = self.torch
        best = [max(self.kept, key=lambda kept: common(head, kept.ids), default=None) for head in heads]
        lengths = [0 if kept is None else common(head, kept.ids) for head, kept in zip(heads, best)]
        past, new = max(lengths), max(len(ids) - found for ids, found in zip(rows, lengths))
        mask = torch.zeros(len(rows), past + new, dtype=torch.long)
        ids_in = torch.zeros(len(rows), new, dtype=torch.long)
        positions = torch.zeros(len(rows), new, dtype=torch.long)
        for number, (ids, found) in enumerate(zip(rows, lengths)):
            fresh = len(ids) - found
            mask[number, past - found : past] = 1
            mask[number, past + new - fresh :] = 1
            ids_in[number, new - fresh :] = torch.tensor(ids[found:])
            positions[number, new - fresh :] = torch.arange(found, len(ids))
        cache = self.assembled(best, lengths, past)
        out = self.model(ids_in, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True, logits_to_keep=last)
        self.passes += 1
        return out.past_key_values, mask, out.logits, lengths

    def assembled(self, best, lengths, past):
        from transformers import DynamicCache

        cache = DynamicCache(config=self.model.config)
        if past == 0:
            return cache
        some = next(kept for kept, found in zip(best, lengths) if found)
        for layer, parts in enumerate(some.layers):
            pair = []
            for side, part in enumerate(parts):
                block = part.new_zeros(len(best), part.shape[0], past, part.shape[2])
                for number, (kept, found) in enumerate(zip(best, lengths)):
                    if found:
                        block[number, :, past - found :] = kept.layers[layer][side][:, :found]
                pair.append(block)
            cache.update(*pair, layer)
        return cache

    def decode(self, asks, cache, mask, logits, computed):
        torch = self.torch
        written = [[] for _ in asks]
        finish = ["length"] * len(asks)
        live = [True] * len(asks)
        generators = [self.generator(ask) for ask in asks]
        lengths = torch.tensor([len(ask["ids"]) for ask in asks])
        for step in range(max(ask["max_tokens"] for ask in asks)):
            drawn = [draw(torch, self.left(row, ask), ask, generator) for row, ask, generator in zip(logits, asks, generators)]
            for number, (ask, token) in enumerate(zip(asks, drawn)):
                if live[number]:
                    live[number] = self.accept(ask, written[number], token, finish, number)
            if not any(live):
                break
            mask = torch.cat([mask, mask.new_ones(len(asks), 1)], dim=1)
            out = self.model(torch.tensor(drawn)[:, None], attention_mask=mask, position_ids=(lengths + step)[:, None],
                             past_key_values=cache, use_cache=True)
            self.passes += 1
            logits = out.logits[:, -1]
        for number, ask in enumerate(asks):
            # The last token drawn was never computed.
            self.keep([*ask["ids"], *written[number][:-1]], cache, mask, number)
        return [self.answer(ask, ids, how, new) for ask, ids, how, new in zip(asks, written, finish, computed)]

    def left(self, logits, ask):
        """Logits of a row without the end tokens where they are passed over."""
        return logits.index_fill(0, self.torch.tensor(sorted(self.ends), dtype=self.torch.long), -self.torch.inf) if ask.get("ignore_eos") else logits

    def accept(self, ask, written, token, finish, number):
        """Whether the row goes on."""
        if token in self.ends:
            finish[number] = "eos"
            return False
        written.append(token)
        if ask.get("stop") and any(stop in self.tokenizer.decode(written) for stop in ask["stop"]):
            finish[number] = "stop"
            return False
        return len(written) < ask["max_tokens"]

    def answer(self, ask, written, finish, computed):
        text = self.tokenizer.decode(written)
        cuts = [text.index(stop) for stop in ask.get("stop", ()) if stop in text]
        return {"ids": written, "text": text[: min(cuts, default=len(text))], "finish": finish, "computed": computed,
                "cached": len(ask["ids"]) - computed}

    def generator(self, ask):
        if not ask.get("temperature"):
            return None
        generator = self.torch.Generator()
        generator.manual_seed(ask["seed"]) if ask.get("seed") is not None else generator.seed()
        return generator

    def keep(self, ids, cache, mask, number):
        """The row's columns without those that pad it."""
        columns = mask[number].nonzero()[: len(ids), 0]
        layers = [(layer.keys[number][:, columns], layer.values[number][:, columns]) for layer in cache.layers]
        self.kept.append(Kept(list(ids), layers))
        while sum(kept.bytes for kept in self.kept) > self.room and len(self.kept) > 1:
            self.kept.pop(0)


def in_batches(batch, asks):
    return [answer for start in range(0, len(asks), MOST_ROWS) for answer in batch(asks[start : start + MOST_ROWS])]


def common(one, other):
    """Length of the longest common prefix; slices are compared, not tokens."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def draw(torch, logits, ask, generator):
    if generator is None:
        return int(logits.argmax())
    shares = (logits.float() / ask["temperature"]).softmax(-1)
    if ask.get("top_p", 1) < 1:
        ordered, places = shares.sort(descending=True)
        ordered[ordered.cumsum(0) - ordered >= ask["top_p"]] = 0
        shares = torch.zeros_like(shares).scatter_(0, places, ordered)
    # Inverse distribution: `multinomial` takes a millisecond a row.
    sums = shares.cumsum(0)
    point = torch.rand(1, generator=generator) * sums[-1]
    return min(int(torch.searchsorted(sums, point)), len(sums) - 1)


if __name__ == "__main__":
    serve(Transformers())
