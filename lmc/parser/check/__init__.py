"""The checker: from the path of a root file to a checked program."""

from lmc.parser.check.model import Checked, CheckedFile
from lmc.parser.check.program import check

__all__ = ["Checked", "CheckedFile", "check"]
