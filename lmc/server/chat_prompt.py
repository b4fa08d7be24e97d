"""Messages and raw texts as prompts, in the model's own template.

    [{"role": "user", "content": "Hi"}]      <|im_start|>user\\nHi<|im_end|>\\n<|im_start|>assistant\\n
    a last message of the assistant           … <|im_start|>assistant\\nSure:        it is gone on with

Contents never pass through the template.  Neighbouring messages of one role are one turn, with a blank line between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lmc.runtime.answers import Answers
from lmc.runtime.context import ContextError, Prompt, Prompter
from lmc.server.errors import ApiError, refused
from lmc.server.openai_bodies import ChatBody, CompletionBody

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
#: Bytes; what is longer is tokenised in a thread, so that others' answers go on.
_LONG = 16_384


async def chat_prompt(session: Answers, body: ChatBody, *, most: int) -> Prompt:
    """What the model reads.  `most`: bytes of text.  Raises `ApiError`."""
    check_size(sum(len(message.content.encode()) for message in body.messages), "messages", most)
    if sum(len(message.content) for message in body.messages) < _LONG:
        return _chat(session.prompter, body)
    return await asyncio.to_thread(_chat, session.prompter, body)


async def raw_prompts(session: Answers, body: CompletionBody, *, most: int, most_prompts: int) -> list[Prompt]:
    """The same of each raw text.  `most_prompts`: how many of them."""
    given = body.prompt if isinstance(body.prompt, list) and not isinstance(body.prompt[0], int) else [body.prompt]
    if len(given) * body.n > most_prompts:
        raise refused("prompt", f"`prompt` and `n` make {len(given) * body.n:,} generations, this server runs {most_prompts:,} at a time")
    texts = [text for text in given if isinstance(text, str)]
    check_size(sum(len(text.encode()) for text in texts), "prompt", most)
    if sum(map(len, texts)) < _LONG:
        return [_raw(session, prompt, body.heal) for prompt in given]
    return await asyncio.to_thread(lambda: [_raw(session, prompt, body.heal) for prompt in given])


def check_size(size: int, param: str, most: int) -> None:
    """Raises `ApiError` for more text than is allowed."""
    if size > most:
        raise ApiError(400, f"the text has {size:,} bytes, this server takes {most:,}", param=param, code="context_length_exceeded")


def _chat(prompter: Prompter, body: ChatBody) -> Prompt:
    context, role = prompter.new(), None
    for place, message in enumerate(body.messages):
        before, role = role, _ROLES[message.role]
        try:
            context = prompter.open(context, role)
            context = prompter.append(context, role, "\n\n" * (role == before) + message.content)
        except ContextError as error:
            raise refused(f"messages[{place}]", str(error), code="E0840") from None
    try:
        return prompter.prompt(context, "assistant", heal=body.heal)
    except ContextError as error:
        raise refused("messages", str(error), code="E0840") from None


def _raw(session: Answers, prompt: str | Sequence[int], heal: bool) -> Prompt:
    if not isinstance(prompt, str):
        size = len(session.tokenizer.token_bytes)
        wrong = next((token for token in prompt if not 0 <= token < size), None)
        if wrong is not None:
            raise refused("prompt", f"`prompt` has the token id {wrong}, expected 0 to {size - 1}")
        return Prompt(tuple(prompt), b"")
    try:
        context = session.prompter.append(session.prompter.new(), "raw", prompt)
        return session.prompter.prompt(context, "raw", heal=heal)
    except ContextError as error:
        raise refused("prompt", str(error), code="E0840") from None
