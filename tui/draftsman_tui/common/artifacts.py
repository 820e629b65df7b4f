"""Text rendering of artifacts and diffs."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from draftsman.agent_runs.changes.shown_code import WHOLE, shown_code
from draftsman_tui.terminal.output import styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.runtime import Runtime

HEADERS: Final = ("diff ", "index ", "+++", "---", "new ", "old mode ", "deleted ", "rename ")
"""What lines before the hunks of a file begin with."""


async def read_patch(rt: Runtime, number: int, run: int | None = None) -> str | None:
    """Return the patch of a run, or the newest of the job."""
    artifact = await rt.changes.patch(number, run)
    if artifact is None:
        return None
    return (await rt.checkpoints.content(artifact)).decode("utf-8", "replace")


def printable(patch: str) -> str:
    """Return a patch, or a line of it, without bytes that are not UTF-8."""
    return patch.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def patch_line(text: str) -> Text:
    """Style a line of a patch by its prefix; all of it is visible text."""
    shown = shown_code(text, WHOLE).text
    if text.startswith(HEADERS):
        return styled(shown, "bold")
    styles = {"+": "green", "-": "red", "@": "cyan"}
    return styled(shown, styles.get(text[:1], ""))


def content_json(data: bytes) -> dict[str, Any]:
    """Return the content for JSON, base64-encoded unless it is UTF-8 text."""
    try:
        return {"content": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"content_base64": base64.b64encode(data).decode("ascii")}
