"""What operators and builtins compute, used by folding and by the machine, so that they cannot differ."""

from lmc.pure.core import PureError, PureFunction
from lmc.pure.table import PURE, call_pure

__all__ = ["PURE", "PureError", "PureFunction", "call_pure"]
