"""Text rendering of artifacts and diffs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from draftsman.domain.job import TERMINAL
from draftsman_tui.common.output import line, styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.runtime import Runtime


async def no_diff_reason(rt: Runtime, name: str, number: int, missing: bool) -> str:
    """Say why a job or a question has no diff: the patch is missing, or empty."""
    status, _ = await rt.read_model.status_and_version(number)
    if status in TERMINAL and "/" not in name:
        return f"{name} left no changes"
    return f"{name}: diff not available" if missing else f"{name} has no changes so far"


def format_size(count: int) -> str:
    """Return a number of bytes as people read it."""
    if count < 1000:
        return f"{count} B"
    if count < 1_000_000:
        return f"{count / 1000:.1f} kB"
    return f"{count / 1_000_000:.1f} MB"


def patch_line(text: str) -> Text:
    """Return a line of a patch, told apart by how it begins and by colour."""
    if text.startswith(("diff ", "index ", "+++", "---", "new ", "deleted ", "rename ")):
        return styled(text, "bold")
    styles = {"+": "green", "-": "red", "@": "cyan"}
    return styled(text, styles.get(text[:1], ""))


def file_text(one: Any) -> Text:
    """Return a file that a run left on one line."""
    return line(
        styled(f"  {one.name}", "bold"), f"  {one.kind}  {format_size(one.size)}  run .{one.run}"
    )
