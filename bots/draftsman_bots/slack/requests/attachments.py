"""Files and threads of requests in Slack, as attachments of their jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from draftsman.jobs.requests.attachments import MAX_FILES
from draftsman.jobs.requests.invocation import FileRef

if TYPE_CHECKING:
    from draftsman_bots.slack.context import BotContext

SCOPE: Final = "files:read"
NO_SCOPE: Final = "the app lacks the scope files:read of the full manifest"
THREAD_FILE: Final = "slack-thread.md"


def file_refs(ctx: BotContext, files: Sequence[FileRef]) -> tuple[FileRef, ...]:
    """Return the files of a message for its job; without the scope all are refused."""
    scopes = ctx.identity.scopes
    if scopes is None or SCOPE in scopes:
        return tuple(files)
    return tuple(file.model_copy(update={"reason": file.reason or NO_SCOPE}) for file in files)


def request_refs(
    ctx: BotContext, channel: str, thread: str, ts: str, files: Sequence[FileRef] = ()
) -> tuple[FileRef, ...]:
    """Return the files of a request and, if it is in a thread that the bot reads, the thread."""
    refs = file_refs(ctx, files)
    if not thread or not ctx.identity.reads_replies:
        return refs
    reference = {"channel": channel, "thread": thread, "before": ts}
    messages = FileRef(reference=reference, name=THREAD_FILE, media_type="text/markdown")
    return (*refs[: MAX_FILES - 1], messages, *refs[MAX_FILES - 1 :])
