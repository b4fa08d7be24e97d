"""`lmc fmt`: the one style of `.lmp` files.  Start reading at `style.py`."""

from lmc.parser.format.style import Formatted, format_source

__all__ = ["Formatted", "format_source"]
