"""Every code that the checker raises stands in the table, and every one of them is shown by a golden file or a test here."""

import re
from pathlib import Path

from lmc.codes import CODES

ROOT = Path(__file__).resolve().parents[3]
RAISED = {
    code for path in (ROOT / "lmc" / "parser" / "check").glob("*.py")
    for code in re.findall(r'"([EW]\d{3,4})"', path.read_text(encoding="utf-8"))
}


def test_codes_are_in_the_table():
    assert RAISED and RAISED <= set(CODES), sorted(RAISED - set(CODES))


def test_every_code_is_shown():
    here = Path(__file__).parent
    shown = {
        code for path in (*(here / "errors").glob("*.err"), *here.glob("test_*.py"))
        for code in re.findall(r"\b([EW]\d{3,4})\b", path.read_text(encoding="utf-8"))
    }
    assert RAISED <= shown, sorted(RAISED - shown)
