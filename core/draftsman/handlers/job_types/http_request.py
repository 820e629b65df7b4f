"""`http_request`: an HTTP request whose response becomes the result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import httpx

from draftsman.errors import Failure, NotOnThisWorker
from draftsman.handlers.context import RunContext, worker_run
from draftsman.handlers.job_types.result_content import check_schema, decode_output, to_result
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.requests.payloads import IDEMPOTENT, HttpRequest, parse
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.log import redact
from draftsman.outbound import secret_values
from draftsman.outbound.http_client import (
    HttpCall,
    HttpClient,
    OutboundResponse,
    origin,
    parse_url,
    retry_after,
)
from draftsman.outbound.timeouts import Timeouts
from draftsman.text import first_line

STEP: Final = "request"
BODY: Final = "response"
"""Artifact with a response too long for the result."""
MAX_LOGGED_BODY: Final = 64 * 1024
"""Bytes of an error response that are logged."""
SECRET_HEADERS: Final = frozenset({"set-cookie", "www-authenticate", "authorization"})
"""Response headers that are not stored."""


async def http_request(ctx: RunContext) -> Outcome:
    """Send the request; an interrupted run repeats it with the same idempotency key."""
    payload = parse("http_request", ctx.job.payload)
    assert isinstance(payload, HttpRequest)  # noqa: S101 - the type's own model
    return Done(
        await ctx.step(STEP, lambda invocation: _request(worker_run(ctx), payload, invocation))
    )


async def _request(run: WorkerRun, payload: HttpRequest, invocation: str) -> dict[str, Any]:
    settings = run.settings.http
    call, secret = _call(run, payload, invocation)
    client = HttpClient(settings)
    timeouts = Timeouts.of(run.limits)
    redirects = settings.max_redirects if payload.follow_redirects else 0
    async with client.stream(call, timeouts, redirects=redirects) as response:
        run.log.write(f"{payload.method} {response.where}: {response.status} {response.reason}")
        if not _is_expected(payload, response.status):
            raise await response_failure(run, response, payload.method, secret)
        data = await response.read()
    if secret:
        data = data.replace(secret.encode(), b"***")
    content_type = (
        "application/octet-stream" if response.packed else response.headers.get("content-type", "")
    )
    output = decode_output(data, content_type)
    await check_schema(run, payload.output, output, data, f"response of {response.where}")
    head = {
        "status": response.status,
        "url": response.url,
        "headers": _headers_to_store(response.headers),
    }
    return head | await to_result(run, data, output, BODY)


async def response_failure(
    run: WorkerRun, response: OutboundResponse, method: str, *secrets: str
) -> Failure:
    """Return the Failure for an unexpected response, whose body is logged."""
    text = (await response.beginning(MAX_LOGGED_BODY)).decode("utf-8", "replace")
    text = redact(secret_values.redact_values(text, *secrets))
    if text.strip():
        run.log.write(text)
    detail = f": {first_line(text, 200)}" if text.strip() else ""
    head = f"{method} {response.where}: {response.status} {response.reason}".strip()
    return Failure(
        head + detail,
        origin="http",
        http_status=response.status,
        retry_after=retry_after(response.headers),
        declared="INVALID_OUTPUT" if 200 <= response.status < 300 else None,
    )


def _call(run: WorkerRun, payload: HttpRequest, invocation: str) -> tuple[HttpCall, str]:
    """Return the request and its secret, which must not be stored."""
    url = parse_url(payload.url)
    if payload.query:
        url = url.copy_merge_params(httpx.QueryParams(payload.query))
    headers = {name.lower(): value for name, value in payload.headers.items()}
    if payload.method not in IDEMPOTENT:
        headers["idempotency-key"] = invocation
    body = None
    if "text" in payload.model_fields_set and payload.text is not None:
        body = payload.text.encode()
        headers.setdefault("content-type", "text/plain; charset=utf-8")
    elif "json_" in payload.model_fields_set:
        body = json.dumps(payload.json_, ensure_ascii=False).encode()
        headers.setdefault("content-type", "application/json")
    secret = ""
    if payload.credential is not None:
        name, value, secret = _credential(run, payload.credential, url)
        headers[name.lower()] = value
    return HttpCall(payload.method, str(url), headers, body), secret


def _credential(run: WorkerRun, name: str, url: httpx.URL) -> tuple[str, str, str]:
    """Return header, value and secret of a credential; raises Failure for another origin."""
    credential = run.settings.http.credentials.get(name)
    if credential is None:
        text = f"no credential {name!r} on this worker; add it to [http.credentials]"
        raise NotOnThisWorker(text, origin="http", code="no_such_credential")
    if origin(parse_url(credential.origin)) != origin(url):
        text = f"credential {name!r} is for {credential.origin}, not for the origin of this URL"
        raise Failure(text, origin="http", code="request")
    value = secret_values.read_secret(credential.secret, f"credential {name!r}")
    return credential.header, credential.prefix + value, value


def _is_expected(payload: HttpRequest, status: int) -> bool:
    return status in payload.expect_status if payload.expect_status else 200 <= status < 300


def _headers_to_store(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: redact(value) for name, value in headers.items() if name not in SECRET_HEADERS}
