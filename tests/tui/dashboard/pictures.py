"""Compares what a dashboard shows with its picture, an SVG that a browser opens."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.tui.dashboard.seeing import Seen

KEPT: Final = Path(__file__).parent / "pictures"
TAKEN: Final = Path(__file__).parents[3] / ".pytest_cache" / "pictures"
"""Where pictures go that are not as they were; to keep them is to copy them."""


def is_as_pictured(name: str, seen: Seen) -> None:
    """Fail where the screen is not the picture `name`, and leave a new one to be looked at."""
    svg, kept, taken = seen.app.export_screenshot(), KEPT / f"{name}.svg", TAKEN / f"{name}.svg"
    if kept.exists() and kept.read_text("utf-8") == svg:
        taken.unlink(missing_ok=True)
        return
    TAKEN.mkdir(parents=True, exist_ok=True)
    taken.write_text(svg, "utf-8")
    raise AssertionError(
        f"{name} is not as pictured; if {taken} is as it should be: cp {TAKEN}/*.svg {KEPT}/"
    )
