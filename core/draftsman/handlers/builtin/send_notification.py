"""`send_notification`: a message to people, sent through the outbox."""

from __future__ import annotations

from typing import Final

from draftsman.domain.job_payloads import SendNotification, parse
from draftsman.domain.outcome import Done, Outcome
from draftsman.handlers.context import RunContext

STEP: Final = "notify"


async def send_notification(ctx: RunContext) -> Outcome:
    """Enqueue the message once; delivery and its retries are the outbox's."""
    payload = parse("send_notification", ctx.job.payload)
    assert isinstance(payload, SendNotification)  # noqa: S101 - the type's own model
    deliveries = await ctx.step(
        STEP, lambda key: ctx.notify(payload.text, payload.targets, key=key)
    )
    return Done({"deliveries": deliveries})
