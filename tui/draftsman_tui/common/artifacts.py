"""Text rendering of artifacts and diffs."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from draftsman_tui.terminal.output import styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.runtime import Runtime


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
    """Style a line of a patch by its prefix."""
    if text.startswith(("diff ", "index ", "+++", "---", "new ", "deleted ", "rename ")):
        return styled(text, "bold")
    styles = {"+": "green", "-": "red", "@": "cyan"}
    return styled(text, styles.get(text[:1], ""))


def content_json(data: bytes) -> dict[str, Any]:
    """Return the content for JSON, base64-encoded unless it is UTF-8 text."""
    try:
        return {"content": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"content_base64": base64.b64encode(data).decode("ascii")}
