"""vLLM on the processor as a peer: its asynchronous engine with automatic prefix caching, token ids in.

Prefixes are cached in blocks of 32 tokens, the size that computes least on these workloads (its default on a processor is 128).
"""

import os
import sys

from end_tokens import end_tokens, never
from peer_protocol import Engine, serve

BLOCK = 32


class Vllm(Engine):
    async def open(self, job):
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", str(max(1, job["pool_bytes"] >> 30)))
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", cores(job["threads"]))
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
        # What is compiled ahead is not read back in this version, and compiled anew for minutes at each start; this cache is.
        os.environ.setdefault("VLLM_USE_AOT_COMPILE", "0")
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        import vllm
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        self.vllm, self.numbers, self.never = vllm, 0, never(end_tokens(job["model"]))
        arguments = AsyncEngineArgs(model=job["model"], dtype=job["dtype"], block_size=BLOCK, enable_prefix_caching=True,
                                    max_num_seqs=job["parallel"], max_model_len=8192, disable_log_stats=True)
        self.engine = AsyncLLM.from_engine_args(arguments)
        notes = [f"automatic prefix caching in blocks of {BLOCK} tokens", "log-probabilities of prompts pass the cache by"]
        return {"engine": f"vLLM {vllm.__version__}", "precision": job["dtype"],
                "can": ["ids", "free", "ignore_eos", "regex", "schema", "seed", "stop", "score"], "notes": notes}

    async def generate(self, ask):
        from vllm.sampling_params import RequestOutputKind

        settings = {"max_tokens": ask["max_tokens"], "temperature": ask.get("temperature", 0.0), "top_p": ask.get("top_p", 1.0),
                    "seed": ask.get("seed"), "stop": ask.get("stop") or None,
                    "logit_bias": self.never if ask.get("ignore_eos") else None,
                    "structured_outputs": self.constraint(ask), "output_kind": RequestOutputKind.FINAL_ONLY}
        last = await self.last(ask["ids"], self.vllm.SamplingParams(**settings))
        made = last.outputs[0]
        ids = list(made.token_ids)
        finish = "length" if made.finish_reason == "length" else "stop"
        if finish == "stop" and ids and not isinstance(made.stop_reason, str):
            # The end token is among the ids.
            ids.pop()
        return {"ids": ids, "text": made.text, "finish": finish, **self.prompt_tokens(last)}

    async def score(self, ask):
        last = await self.last(ask["ids"], self.vllm.SamplingParams(max_tokens=1, temperature=0.0, prompt_logprobs=0))
        found = [last.prompt_logprobs[place][ask["ids"][place]].logprob for place in range(ask["start"], len(ask["ids"]))]
        return {"logprobs": found, **self.prompt_tokens(last)}

    async def last(self, ids, settings):
        """The request's result; cancelling the waiter aborts it in the engine."""
        self.numbers += 1
        async for output in self.engine.generate({"prompt_token_ids": ids}, settings, str(self.numbers)):
            result = output
        return result

    def constraint(self, ask):
        if not ask.get("regex") and not ask.get("schema"):
            return None
        from vllm.sampling_params import StructuredOutputsParams

        return StructuredOutputsParams(regex=ask["regex"]) if ask.get("regex") else StructuredOutputsParams(json=ask["schema"])

    def prompt_tokens(self, output):
        cached = output.num_cached_tokens or 0
        return {"computed": len(output.prompt_token_ids) - cached, "cached": cached}

    async def reset(self):
        await self.engine.reset_prefix_cache()

    async def close(self):
        self.engine.shutdown()


def cores(threads):
    """So many of the processors that this process may use, as vLLM wants them listed."""
    return ",".join(map(str, sorted(os.sched_getaffinity(0))[:threads]))


if __name__ == "__main__":
    # Its engine core is a process of its own, which imports this file again.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    serve(Vllm())
