"""`webhook_dispatch`: a signed event for a configured webhook."""

from __future__ import annotations

import json
import time
from typing import Any, Final

from draftsman.errors import NotOnThisWorker
from draftsman.handlers.context import RunContext, worker_run
from draftsman.handlers.job_types.http_request import response_failure
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.requests.payloads import WebhookDispatch, parse
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.outbound import secret_values, webhook_signature
from draftsman.outbound.http_client import HttpCall, HttpClient
from draftsman.outbound.timeouts import Timeouts

STEP: Final = "dispatch"


async def webhook_dispatch(ctx: RunContext) -> Outcome:
    """Send the event with the invocation id as its id, by which receivers can deduplicate."""
    payload = parse("webhook_dispatch", ctx.job.payload)
    assert isinstance(payload, WebhookDispatch)  # noqa: S101 - the type's own model
    return Done(
        await ctx.step(STEP, lambda invocation: _send(worker_run(ctx), payload, invocation))
    )


async def _send(run: WorkerRun, payload: WebhookDispatch, invocation: str) -> dict[str, Any]:
    receiver = run.settings.webhooks.get(payload.webhook)
    if receiver is None:
        names = ", ".join(sorted(run.settings.webhooks)) or "none"
        text = f"no webhook {payload.webhook!r} on this worker; configured webhooks: {names}"
        raise NotOnThisWorker(text, origin="webhook", code="no_such_webhook")
    keys = secret_values.signing_keys(receiver, payload.webhook)
    event = {
        "type": payload.type,
        "timestamp": run.job.created_at.isoformat(),
        "data": payload.data,
    }
    body = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
    headers = webhook_signature.sign(keys, invocation, int(time.time()), body)
    headers["content-type"] = "application/json"
    client = HttpClient(run.settings.http, trusted=[receiver.url])
    call = HttpCall("POST", receiver.url, headers, body)
    async with client.stream(call, Timeouts.of(run.limits)) as response:
        run.log.write(f"POST {response.where}: {response.status} {response.reason}")
        if not 200 <= response.status < 300:
            raise await response_failure(run, response, "POST")
        await response.beginning(0)
    return {"status": response.status, "webhook_id": invocation}
