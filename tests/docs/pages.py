"""Pages in docs/ that are written by hand except for generated parts between two marks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
BEGIN: Final = "<!-- generated -->\n"
END: Final = "<!-- end -->\n"


def filled(text: str, lines: Iterable[str]) -> str:
    """Return the page with current text between its marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin, f"the page has no line {BEGIN.strip()}"
    assert end, f"the page has no line {END.strip()}"
    return f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n\n{END}{after}"
