"""Download of an attachment of a card, with the token only for Trello."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from draftsman.errors import Failure
from draftsman.jobs.requests.attachments import MAX_BYTES, PendingFile
from draftsman.jobs.retries import ErrorClass, classify
from draftsman_bots.conversation.attachments import FileRefused
from draftsman_bots.json_fields import string
from draftsman_bots.trello.ids import is_id

if TYPE_CHECKING:
    from draftsman_bots.trello.transport.client import Trello

TIMEOUT: Final = 40.0
"""Seconds for a download."""


async def download_file(trello: Trello, file: PendingFile) -> bytes:
    """Return the content of a file; raises FileRefused, and Failure for another attempt.

    The address is made of ids: a URL in an attachment never gets the token.
    """
    card = string(file.reference, "card")
    attachment = string(file.reference, "attachment")
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
