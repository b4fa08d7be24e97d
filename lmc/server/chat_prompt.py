"""Messages and raw texts as prompts, in the model's own template.

    [{"role": "user", "content": "Hi"}]      <|im_start|>user\\nHi<|im_end|>\\n<|im_start|>assistant\\n
    a last message of the assistant           … <|im_start|>assistant\\nSure:        it is gone on with

Contents never pass through the template.  Neighbouring messages of one role are one turn, with a blank line between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from lmc.runtime.answers import Answers
from lmc.runtime.context import Context, ContextError, Prompt, Prompter
from lmc.runtime.request import Generated
from lmc.server.errors import ApiError, refused
from lmc.server.known_turns import KnownTurns
from lmc.server.openai_bodies import ChatBody, CompletionBody

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
#: Bytes; what is longer is tokenised in a thread, so that others' answers go on.
_LONG = 16_384


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """prompt: what the model reads; context, text: those of the turn that is to go on, where it begins, and what was said in it."""

    prompt: Prompt
    context: Context
    text: str


async def chat_prompt(session: Answers, body: ChatBody, turns: KnownTurns | None, *, most: int) -> ChatPrompt:
    """What the model reads.  turns: that are read in the tokens they were written in; most: bytes of text.  Raises `ApiError`."""
    check_size(sum(len(message.content.encode()) for message in body.messages), "messages", most)
    if sum(len(message.content) for message in body.messages) < _LONG:
        return _chat(session.prompter, body, turns)
    return await asyncio.to_thread(_chat, session.prompter, body, turns)


def note_turn(session: Answers, turns: KnownTurns, asked: ChatPrompt, result: Generated) -> None:
    """The answer was given: a client may send it back."""
    after = session.prompter.extend(asked.context, "assistant", asked.prompt, result.ids, result.carry)
    turns.note(asked.context, asked.text + result.text, after)


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


def _chat(prompter: Prompter, body: ChatBody, turns: KnownTurns | None) -> ChatPrompt:
    context, role = prompter.new(), None
    opened, said = context, ""
    try:
        for place, message in enumerate(body.messages):
            before, role = role, _ROLES[message.role]
            opened, said = prompter.open(context, role), "\n\n" * (role == before) + message.content
            known, rest = turns.begun(opened, said) if turns is not None and role == "assistant" else (opened, said)
            context = prompter.append(known, role, rest)
        if role != "assistant":
            opened, said = prompter.open(context, "assistant"), ""
            context = opened
        return ChatPrompt(prompter.prompt(context, "assistant", heal=body.heal), opened, said)
    except ContextError as error:
        raise refused(f"messages[{place}]", str(error), code="E0840") from None


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
