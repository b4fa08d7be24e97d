"""Tools for `react.lmp`.  Both answer any input: what a small model writes is often not what it was asked for."""

import ast
import operator

FACTS = {
    "paris": "Paris is the capital of France; about 2.1 million people live in the city itself.",
    "everest": "Mount Everest is 8,849 metres high, on the border of Nepal and China.",
    "amazon": "The Amazon is about 6,400 kilometres long and carries more water than any other river.",
    "einstein": "Albert Einstein was born in Ulm on 14 March 1879 and died in Princeton on 18 April 1955.",
    "python": "Python is a programming language that Guido van Rossum first released in 1991.",
}


def search(query: str) -> str:
    """The facts whose subject the query names."""
    words = query.lower()
    found = [fact for subject, fact in FACTS.items() if subject in words]
    return " ".join(found) or f"Nothing is known about {query!r}."


_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


def calc(expr: str) -> float:
    """The value of a sum like `3 * (4 + 5)`; 0.0 for anything else."""
    try:
        value = float(_value(ast.parse(expr.strip(), mode="eval").body))
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, RecursionError, MemoryError):
        return 0.0
    return value if abs(value) < 1e15 else 0.0


def _value(node: ast.expr) -> float:
    # The tree is walked by hand: nothing that a model wrote is ever executed.
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.operand))
    raise ValueError("not a sum")
