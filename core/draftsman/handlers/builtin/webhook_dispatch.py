"""`webhook_dispatch`: tell a receiver what happened, signed, and with the same id each time."""

from __future__ import annotations

import json
import time
from typing import Any, Final

from draftsman.domain.job_payloads import WebhookDispatch, parse
from draftsman.domain.messages import webhook_signature
from draftsman.domain.outcome import Done, Outcome
from draftsman.errors import Failure
from draftsman.handlers.builtin.http_request import response_failure
from draftsman.handlers.context import RunContext
from draftsman.outbound import secret_values
from draftsman.outbound.http_client import HttpCall, HttpClient
from draftsman.outbound.timeouts import Timeouts

STEP: Final = "dispatch"


async def webhook_dispatch(ctx: RunContext) -> Outcome:
    """Send the event; its id is the step's, so that the receiver can tell a repetition."""
    asked = parse("webhook_dispatch", ctx.job.payload)
    assert isinstance(asked, WebhookDispatch)  # noqa: S101 - the type's own model
    return Done(await ctx.step(STEP, lambda invocation: _send(ctx, asked, invocation)))


async def _send(ctx: RunContext, asked: WebhookDispatch, invocation: str) -> dict[str, Any]:
    receiver = ctx.settings.webhooks.get(asked.webhook)
    if receiver is None:
        known = ", ".join(sorted(ctx.settings.webhooks)) or "none"
        text = f"there is no webhook {asked.webhook!r} on this worker; configured are: {known}"
        raise Failure(text, origin="webhook", code="no_such_webhook")
    keys = secret_values.signing_keys(receiver, asked.webhook)
    event = {
        "type": asked.type,
        "timestamp": ctx.job.created_at.isoformat(),
        "data": asked.data,
    }
    body = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
    headers = webhook_signature.sign(keys, invocation, int(time.time()), body)
    headers["content-type"] = "application/json"
    client = HttpClient(ctx.settings.http, trusted=[receiver.url])
    call = HttpCall("POST", receiver.url, headers, body)
    async with client.stream(call, Timeouts.of(ctx.limits)) as answer:
        ctx.log(f"POST {answer.where}: {answer.status} {answer.reason}")
        if not 200 <= answer.status < 300:
            raise await response_failure(ctx, answer, "POST")
        await answer.beginning(0)
    return {"status": answer.status, "webhook_id": invocation}
