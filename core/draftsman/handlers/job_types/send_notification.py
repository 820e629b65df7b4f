"""`send_notification`: a message to people, sent through the outbox."""

from __future__ import annotations

from typing import Final

from draftsman.handlers.context import RunContext
from draftsman.jobs.requests.payloads import SendNotification, parse
from draftsman.jobs.runs.outcome import Done, Outcome

STEP: Final = "notify"


async def send_notification(ctx: RunContext) -> Outcome:
    """Enqueue the message once; delivery and its retries are the outbox's."""
    payload = parse("send_notification", ctx.job.payload)
    assert isinstance(payload, SendNotification)  # noqa: S101 - the type's own model
    deliveries = await ctx.step(
        STEP, lambda key: ctx.notify(payload.text, payload.targets, key=key)
    )
    return Done({"deliveries": deliveries})
