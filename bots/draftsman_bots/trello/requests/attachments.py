"""Files that people attached to a card, as attachments of its job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from draftsman.errors import Failure, NotPermitted
from draftsman.jobs.requests.attachments import MAX_FILES
from draftsman.jobs.requests.invocation import FileRef
from draftsman.jobs.requests.service import attachments
from draftsman.people.actor import Actor
from draftsman.people.policy import Verb
from draftsman_bots.json_fields import objects, string
from draftsman_bots.trello.ids import is_id
from draftsman_bots.trello.requests import edit_notices

if TYPE_CHECKING:
    from draftsman_bots.trello.actions import Action
    from draftsman_bots.trello.context import BotContext

GONE_STATUSES: Final = (404, 410)
MAX_REFS: Final = 3 * MAX_FILES
"""Files that a job names; of those, the core refuses the files over its limits."""


def file_refs(card: dict[str, Any], me: str) -> tuple[FileRef, ...]:
    """Return the uploaded files of a card, oldest first, without those of the bot.

    Links are not files: they are in the text of the ticket.
    """
    files = [
        attachment
        for attachment in objects(card, "attachments")
        if _is_uploaded(attachment) and attachment.get("idMember") != me
    ]
    files.sort(key=lambda file: string(file, "id"))
    return tuple(_ref(string(card, "id"), file) for file in files[:MAX_REFS])


async def on_attached(context: BotContext, action: Action) -> str:
    """Add a file that a person attached to a card to its live job; return the outcome.

    The person needs the permission to send messages to the job. Raises Failure.
    """
    if action.member == context.me.id:
        return "own"
    job = await edit_notices.live_job(context, action.card)
    if job is None:
        return "ignored"
    actor = await context.rt.people.actor(
        Actor("trello", action.member, action.name or action.member)
    )
    try:
        context.rt.policy.check(actor, Verb.TELL, invoker=job.invoker_id)
        path = f"/cards/{action.card}/attachments/{action.attachment}"
        attachment = await context.trello.get(path)
    except NotPermitted:
        return "rejected"
    except Failure as error:
        if error.http_status not in GONE_STATUSES:
            raise
        return "ignored"
    if not (isinstance(attachment, dict) and _is_uploaded(attachment)):
        return "ignored"
    files = [_ref(action.card, attachment)]
    added = await context.rt.db.run_transaction(
        lambda conn: attachments.add(conn, job.number, actor, files)
    )
    if added:
        context.downloads.wake()
    return "attached" if added else "ignored"


def _is_uploaded(attachment: dict[str, Any]) -> bool:
    """Return whether an attachment is a file, not a link."""
    return attachment.get("isUpload") is True and is_id(attachment.get("id"))


def _ref(card: str, attachment: dict[str, Any]) -> FileRef:
    """Return the reference of a file; its address ends with the name that downloads need."""
    file = unquote(urlsplit(string(attachment, "url")).path.rpartition("/")[2])
    size = attachment.get("bytes")
    name = string(attachment, "name") or file
    return FileRef(
        reference={"card": card, "attachment": string(attachment, "id"), "file": file[:300]},
        name=name[:1000] or "file",
        media_type=string(attachment, "mimeType")[:200] or None,
        size=size if isinstance(size, int) and size >= 0 else None,
    )
