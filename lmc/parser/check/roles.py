"""Role blocks and the text in them.

    system: "…"      first, at most once before the others
    user: "…"        a turn of the chat
    raw: "…"         plain text with no template; raw and chat do not mix in one conversation

What cannot be known before the program runs (a resumed context, the caller of a part) is left to the run.
"""

from __future__ import annotations

from lmc.parser import ast
from lmc.parser.check.body import Body
from lmc.parser.check.flow import Turns
from lmc.parser.check.model import UNKNOWN
from lmc.parser.check.relations import known


def check_role_block(body: Body, statement: ast.RoleBlock) -> None:
    role = statement.role
    if body.role is not None:
        body.facts.error("E0404", f"`{role}:` cannot stand inside `{body.role}:`", statement, "a turn inside a turn",
                         "end the first block before it: give both the same indentation")
    else:
        _check_order(body, statement)
    before, body.role = body.role, role
    body.block(statement.body)
    body.role = before


def _check_order(body: Body, statement: ast.RoleBlock) -> None:
    role, turns = statement.role, body.flow.turns
    head = statement.span
    if role == "raw":
        if turns in (Turns.CHAT, Turns.SYSTEM):
            body.facts.error("E0405", "`raw:` and chat turns do not mix in one conversation", head, "chat turns stand before it",
                             "write all of it in `raw:`, or all in `system:`, `user:`, `assistant:`")
        body.flow.turns = Turns.RAW
        return
    if turns is Turns.RAW:
        body.facts.error("E0405", "`raw:` and chat turns do not mix in one conversation", head, "`raw:` stands before it",
                         "write all of it in `raw:`, or all in `system:`, `user:`, `assistant:`")
    elif role == "system" and turns is Turns.CHAT:
        body.facts.error("E0406", "`system:` must come first", head, "other turns stand before it",
                         "move it to the top of the conversation")
    body.flow.turns = Turns.CHAT if role != "system" else Turns.SYSTEM if turns in (Turns.EMPTY, Turns.SYSTEM) else turns


def check_text(body: Body, text: ast.Text) -> None:
    """A text as a statement is prompt, so it needs an open turn."""
    if body.role is None and not body.text_part:
        body.facts.error("E0401", "text stands outside a turn", text, "whose text is this?",
                         "put it into a block: `user: \"…\"`; a comment begins with `#`")
    body.placed.add(text)
    body.infer(text)


def refuse_value(body: Body, value: ast.Expr) -> None:
    """`user: essay` looks like text and would put nothing into the prompt."""
    if known(body.facts.expr_types.get(value, UNKNOWN)):
        shown = value.text if isinstance(value, ast.Name) else "…"
        body.facts.error("E0401", "only text in quotes goes into the prompt, and this is a value", value, "not text",
                         f'put it into text: `"${{{shown}}}"`')
