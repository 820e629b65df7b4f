"""Parsers of Slack's file objects. Pure, and no object raises."""

from __future__ import annotations

from typing import Any, Final

from draftsman.jobs.requests.invocation import FileRef
from draftsman_bots.json_fields import objects, string

MAX_PARSED: Final = 100
LINK: Final = "it is a link to another service, not a file in Slack"
UNAVAILABLE: Final = {
    "external": LINK,
    "tombstone": "it was deleted",
    "hidden_by_limit": "Slack hides it: the workspace is over the limit of its plan",
    "access_denied": "the app may not see it",
}
"""Modes of files without content for the app, and the reason for each."""


def parse_files(message: object) -> tuple[FileRef, ...]:
    """Return the files of a message, in order."""
    files = [item for item in objects(message, "files") if string(item, "id")]
    return tuple(_file_ref(item) for item in files[:MAX_PARSED])


def unavailable(file: object) -> str | None:
    """Return why a file has no content for the app; None if it may have some."""
    if isinstance(file, dict) and file.get("is_external") is True:
        return LINK
    return UNAVAILABLE.get(string(file, "mode")) or UNAVAILABLE.get(string(file, "file_access"))


def size_of(file: dict[str, Any]) -> int | None:
    """Return the bytes of a file as Slack says."""
    size = file.get("size")
    return size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None


def _file_ref(file: dict[str, Any]) -> FileRef:
    name = string(file, "name") or string(file, "title") or string(file, "id")
    return FileRef(
        reference={"file": string(file, "id")[:100]},
        name=name[:1000],
        media_type=string(file, "mimetype")[:200] or None,
        size=size_of(file),
        reason=unavailable(file),
    )
