"""Syntax tree -> IR."""

from lmc.parser.lower.program import lower

__all__ = ["lower"]
