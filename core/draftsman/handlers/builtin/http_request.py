"""`http_request`: ask one URL, and keep the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import httpx

from draftsman.domain.job_payloads import IDEMPOTENT, HttpRequest, parse
from draftsman.domain.outcome import Done, Outcome
from draftsman.domain.text import first_line
from draftsman.errors import Failure
from draftsman.handlers.builtin.result_content import check_schema, read, to_result
from draftsman.handlers.context import RunContext
from draftsman.log import redact
from draftsman.outbound import secret_values
from draftsman.outbound.http_client import HttpCall, HttpClient, OutboundResponse, origin, parse_url
from draftsman.outbound.http_failures import retry_after
from draftsman.outbound.timeouts import Timeouts

STEP: Final = "request"
BODY: Final = "response"
"""Artifact with an answer that is too long for the result."""
MAX_LOGGED_BODY: Final = 64 * 1024
"""Bytes of a refusal that go to the run's log."""
SECRET_HEADERS: Final = frozenset({"set-cookie", "www-authenticate", "authorization"})
"""Headers of an answer that are not stored."""


async def http_request(ctx: RunContext) -> Outcome:
    """Make the request once; a resumed run repeats it, with the same key where that matters."""
    asked = parse("http_request", ctx.job.payload)
    assert isinstance(asked, HttpRequest)  # noqa: S101 - the type's own model
    return Done(await ctx.step(STEP, lambda invocation: _ask(ctx, asked, invocation)))


async def _ask(ctx: RunContext, asked: HttpRequest, invocation: str) -> dict[str, Any]:
    settings = ctx.settings.http
    call, hidden = _call(ctx, asked, invocation)
    client = HttpClient(settings)
    patience = Timeouts.of(ctx.limits)
    redirects = settings.redirects if asked.follow_redirects else 0
    async with client.stream(call, patience, redirects=redirects) as answer:
        ctx.log(f"{asked.method} {answer.where}: {answer.status} {answer.reason}")
        if not _is_wanted(asked, answer.status):
            raise await response_failure(ctx, answer, asked.method, hidden)
        data = await answer.read()
    if hidden:
        data = data.replace(hidden.encode(), b"***")
    kind = "application/octet-stream" if answer.packed else answer.headers.get("content-type", "")
    found = read(data, kind)
    await check_schema(ctx, asked.output, found, data, f"the answer of {answer.where}")
    head = {"status": answer.status, "url": answer.url, "headers": _stored(answer.headers)}
    return head | await to_result(ctx, data, found, BODY)


async def response_failure(
    ctx: RunContext, answer: OutboundResponse, method: str, *hidden: str
) -> Failure:
    """Return the Failure of an answer that is not wanted; what it says goes to the run's log."""
    text = (await answer.beginning(MAX_LOGGED_BODY)).decode("utf-8", "replace")
    text = redact(secret_values.redact_values(text, *hidden))
    if text.strip():
        ctx.log(text)
    said = f": {first_line(text, 200)}" if text.strip() else ""
    head = f"{method} {answer.where}: {answer.status} {answer.reason}".strip()
    return Failure(
        head + said,
        origin="http",
        http_status=answer.status,
        retry_after=retry_after(answer.headers),
        declared="INVALID_OUTPUT" if 200 <= answer.status < 300 else None,
    )


def _call(ctx: RunContext, asked: HttpRequest, invocation: str) -> tuple[HttpCall, str]:
    """Return the request, and the secret in it that must not be stored."""
    url = parse_url(asked.url)
    if asked.query:
        url = url.copy_merge_params(httpx.QueryParams(asked.query))
    headers = {name.lower(): value for name, value in asked.headers.items()}
    if asked.method not in IDEMPOTENT:
        headers["idempotency-key"] = invocation
    body = None
    if "text" in asked.model_fields_set and asked.text is not None:
        body = asked.text.encode()
        headers.setdefault("content-type", "text/plain; charset=utf-8")
    elif "json_" in asked.model_fields_set:
        body = json.dumps(asked.json_, ensure_ascii=False).encode()
        headers.setdefault("content-type", "application/json")
    hidden = ""
    if asked.credential is not None:
        name, value, hidden = _credential(ctx, asked.credential, url)
        headers[name.lower()] = value
    return HttpCall(asked.method, str(url), headers, body), hidden


def _credential(ctx: RunContext, name: str, url: httpx.URL) -> tuple[str, str, str]:
    """Return header, value and secret, for the origin that they are for and no other."""
    found = ctx.settings.http.credentials.get(name)
    if found is None:
        text = f"there is no credential {name!r} on this worker; see [http.credentials]"
        raise Failure(text, origin="http", code="no_such_credential")
    if origin(parse_url(found.origin)) != origin(url):
        text = f"credential {name!r} is for {found.origin}, not for this URL"
        raise Failure(text, origin="http", code="request")
    value = secret_values.read_secret(found.secret, f"credential {name!r}")
    return found.header, found.prefix + value, value


def _is_wanted(asked: HttpRequest, status: int) -> bool:
    return status in asked.expect_status if asked.expect_status else 200 <= status < 300


def _stored(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: redact(value) for name, value in headers.items() if name not in SECRET_HEADERS}
