"""Files that people attached to a card, as attachments of its job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urlsplit

from draftsman.domain.requests.attachments import MAX_BYTES, MAX_FILES, PendingFile
from draftsman.domain.requests.invocation import FileRef
from draftsman.domain.retries.error_classes import ErrorClass, classify
from draftsman.errors import Failure
from draftsman_bots.attachment_downloads import FileRefused
from draftsman_bots.json_fields import objects, string
from draftsman_bots.trello.ids import is_id

if TYPE_CHECKING:
    from draftsman_bots.trello.transport.client import Trello

TIMEOUT: Final = 40.0
"""Seconds for a download."""
MAX_REFS: Final = 3 * MAX_FILES
"""Files that a job names; of those, the core refuses the files over its limits."""


def file_refs(card: dict[str, Any], me: str) -> tuple[FileRef, ...]:
    """Return the uploaded files of a card, oldest first, without those of the bot.

    Links are not files: they are in the text of the ticket.
    """
    files = [
        item
        for item in objects(card, "attachments")
        if is_uploaded(item) and is_id(item.get("id")) and item.get("idMember") != me
    ]
    files.sort(key=lambda item: string(item, "id"))
    return tuple(_ref(string(card, "id"), item) for item in files[:MAX_REFS])


def is_uploaded(attachment: dict[str, Any]) -> bool:
    """Return whether an attachment is a file, not a link."""
    return attachment.get("isUpload") is True


async def download(trello: Trello, file: PendingFile) -> bytes:
    """Return the content of a file; raises FileRefused, and Failure for another attempt.

    The address is made of ids: a URL in an attachment never gets the token.
    """
    card, attachment = (string(file.reference, name) for name in ("card", "attachment"))
    if not (is_id(card) and is_id(attachment)):
        raise FileRefused("its reference is not valid")
    name = quote(string(file.reference, "file") or "file", safe="")
    path = f"/cards/{card}/attachments/{attachment}/download/{name}"
    try:
        return await trello.download(path, MAX_BYTES, TIMEOUT)
    except Failure as error:
        if classify(error) is ErrorClass.PERMANENT:
            raise FileRefused(f"Trello refused it: {error}") from None
        raise


def _ref(card: str, item: dict[str, Any]) -> FileRef:
    """Return the reference of a file; its address ends with the name that downloads need."""
    file = unquote(urlsplit(string(item, "url")).path.rpartition("/")[2])
    size = item.get("bytes")
    name = string(item, "name") or file
    return FileRef(
        reference={"card": card, "attachment": string(item, "id"), "file": file[:300]},
        name=name[:1000] or "file",
        media_type=string(item, "mimeType")[:200] or None,
        size=size if isinstance(size, int) and size >= 0 else None,
    )
