"""`send_notification`: a message for people, on its way with the job's end."""

from __future__ import annotations

from typing import Final

from draftsman.domain.job_payloads import SendNotification, parse
from draftsman.domain.outcome import Done, Outcome
from draftsman.handlers.context import RunContext

STEP: Final = "notify"


async def send_notification(ctx: RunContext) -> Outcome:
    """Hand the message to the outbox once; delivering it, and trying again, is the outbox's."""
    asked = parse("send_notification", ctx.job.payload)
    assert isinstance(asked, SendNotification)  # noqa: S101 - the type's own model
    made = await ctx.step(STEP, lambda key: ctx.notify(asked.text, asked.targets, key=key))
    return Done({"deliveries": made})
