"""Values known at compile time, as operands: scalars in place, the rest as `const`."""

from __future__ import annotations

import json
from typing import Any

from lmc.diagnostics import Span
from lmc.ir.builder import literal
from lmc.ir.core import Operand
from lmc.ir.ops import Const
from lmc.parser.lower.frame import Frame
from lmc.types import FloatT, Type
from lmc.values import from_data, to_json


def constant(frame: Frame, span: Span, value: Any, type: Type, hint: str = "") -> Operand:
    """The operand of a value as `lmc.values` describes values."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return literal(float(value) if isinstance(type, FloatT) else value)
    return frame.value(Const, span, type, hint, value=to_json(value, type))


def json_constant(frame: Frame, span: Span, text: str, type: Type) -> Operand:
    """The operand of a default, which is kept as JSON text."""
    return constant(frame, span, from_data(json.loads(text), type), type)
