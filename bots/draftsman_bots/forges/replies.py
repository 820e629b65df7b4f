"""Replies to comments: as a message of a job, or for requests without a job as a plain comment."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final
from uuid import NAMESPACE_URL, uuid5

from draftsman.deliveries.target import parse
from draftsman.forges.untrusted_text import line
from draftsman_bots.forges.deliveries.render import marker_of, with_marker

if TYPE_CHECKING:
    from draftsman.people.spans import Spans
    from draftsman_bots.forges.context import EventContext

SEARCHED: Final = timedelta(days=1)
"""Age of comments among which an earlier reply is searched for."""


async def reply(context: EventContext, job: int, text: str | Spans) -> None:
    """Reply as a message of a job, once for each version of the comment."""
    at = parse(context.target)
    spans = (text,) if isinstance(text, str) else text
    author = f"{context.event.author}: "
    await context.rt.outbox.notice(job, f"comment:{context.event.key}", (author, *spans), at=at)


async def reply_without_job(context: EventContext, text: str) -> None:
    """Reply once for each version of the comment; an earlier reply is found by its marker."""
    marker = str(uuid5(NAMESPACE_URL, context.key))
    discussion = context.discussion
    now = await context.rt.checkpoints.now()
    comments = await discussion.since(now - SEARCHED)
    if any(marker_of(comment.body) == marker for comment in comments):
        return
    body = f"{line(context.event.author, 100)}: {text}"
    await discussion.post(with_marker(body, marker, discussion.limit))
