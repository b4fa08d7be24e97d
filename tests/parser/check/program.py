"""Programs written in a test: files in a folder, checked."""

from pathlib import Path

from lmc.parser.check import Checked, check


def checked(folder: Path, text: str, **others: str) -> Checked:
    """Check `text` as `main.lmp` in `folder`, with other files beside it (`lib__x` is `lib/x.lmp`)."""
    for name, source in {**others, "main": text}.items():
        path = folder / (name.replace("__", "/") + ".lmp")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return check(str(folder / "main.lmp"))


def codes(result: Checked) -> list[str]:
    return [d.code for d in result.diagnostics]
