"""A short generation before something is measured: it reads the weights, builds what is built once, and touches the kernels.

    await warm_up(session)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmc.runtime.context import Prompter
    from lmc.runtime.session import Session

# No measured prompt begins like it, not by a single token.
_TEXT = "~ Warming up: one, two, three,"
#: How many tokens are generated after it.
WARM_UP_TOKENS = 4


async def warm_up(session: Session) -> None:
    from lmc.runtime.request import GenerateRequest

    await session.generate(GenerateRequest(warm_up_prompt(session.prompter), WARM_UP_TOKENS, ignore_eos=True))


def warm_up_prompt(prompter: Prompter) -> tuple[int, ...]:
    """The same for another engine, in tokens of the prompter's model."""
    return prompter.prompt(prompter.append(prompter.new(), "raw", _TEXT), "raw", heal=False).ids
