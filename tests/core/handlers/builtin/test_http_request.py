"""`http_request` and `webhook_dispatch` jobs against a faulty server."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from draftsman.domain.job import Status
from draftsman.domain.messages.webhook_signature import keys, verify
from draftsman.errors import UsageError
from draftsman.runtime import Runtime
from tests.core.handlers.builtin.web_jobs import SECRET, configured, done, log_of, result_of
from tests.core.loops.workers import last_event
from tests.factories import Factory
from tests.support.faulty_server import FaultyServer, answer, web

S = Status


@pytest.fixture
async def site() -> AsyncIterator[FaultyServer]:
    """Give a server."""
    async with web() as server:
        yield server


async def test_the_answer_is_the_result(rt: Runtime, make: Factory, site: FaultyServer) -> None:
    site.routes["/a"] = answer(
        b'{"n": [1, 2]}', content_type="application/json", x_a="b", set_cookie="s=1"
    )
    payload = {"url": site.url("/a"), "query": {"q": "x y"}, "headers": {"X-Own": "1"}}
    job = await done(configured(rt, site), make, "http_request", payload)
    assert job.status is S.COMPLETED
    assert job.result is not None
    result = dict(job.result)
    assert result.pop("headers") == {
        "content-length": "13",
        "content-type": "application/json",
        "x-a": "b",
    }
    assert result == {
        "status": 200,
        "url": site.url("/a?q=x+y"),
        "body": {"n": [1, 2]},
        "encoding": "json",
        "bytes": 13,
    }
    [request] = site.requests
    assert (request.headers["x-own"], "idempotency-key" in request.headers) == ("1", False)


@pytest.mark.parametrize(
    ("kind", "data", "body", "encoding", "replaced"),
    [
        ("text/plain", b"caf\xc3\xa9", "café", "text", None),
        ("text/plain", b"caf\xe9\x00", "caf\ufffd\ufffd", "text", True),
        ("text/plain; charset=ISO-8859-1", b"caf\xe9", "café", "text", None),
        ("text/plain; charset=unicode_escape", b"\\x41", "\\x41", "text", None),
        ("application/json", b'{"a": NaN}', '{"a": NaN}', "text", None),
        ("application/json", b"[" * 9000, "[" * 9000, "text", None),
        ("image/png", b"\x89PNG", base64.b64encode(b"\x89PNG").decode(), "base64", None),
        ("", b"plain", "plain", "text", None),
    ],
    ids=str,
)
async def test_bytes_become_readable(
    rt: Runtime,
    make: Factory,
    site: FaultyServer,
    kind: str,
    data: bytes,
    body: str,
    encoding: str,
    replaced: bool | None,
) -> None:
    site.routes["/"] = answer(data, content_type=kind)
    job = await done(configured(rt, site), make, "http_request", {"url": site.url()})
    assert job.result is not None, job.last_error
    result = (job.result["body"], job.result["encoding"], job.result.get("replaced"))
    assert result == (body, encoding, replaced)


async def test_a_long_answer_is_an_artifact(rt: Runtime, make: Factory, site: FaultyServer) -> None:
    site.routes["/"] = answer(b"a" * 300_000, content_type="text/plain")
    job = await done(configured(rt, site), make, "http_request", {"url": site.url()})
    assert job.result is not None
    assert (job.result["body"], job.result["artifact"]) == (None, "response")
    assert await result_of(rt, job.number) == {"response": b"a" * 300_000}


async def test_an_answer_that_does_not_fit_fails_and_is_kept(
    rt: Runtime, make: Factory, site: FaultyServer
) -> None:
    site.routes["/"] = answer(b'{"n": "one"}', content_type="application/json")
    output_schema = {"properties": {"n": {"type": "integer"}}}
    job = await done(
        configured(rt, site), make, "http_request", {"url": site.url(), "output": output_schema}
    )
    assert (job.status, job.error_class) == (S.FAILED, "INVALID_OUTPUT")
    assert job.last_error == (
        f"response of {site.url()} does not match its schema: at ['n']: 'one' is not of type"
        f" 'integer'; to see it: draftsman artifacts get D-{job.number} invalid-output"
    )
    assert await result_of(rt, job.number) == {"invalid-output": b'{"n": "one"}'}


async def test_a_refusal_says_why_and_when_to_come_again(
    rt: Runtime, make: Factory, site: FaultyServer
) -> None:
    site.routes["/"] = answer(b"busy\nsee later", 503, "Service Unavailable", retry_after="77")
    job = await done(configured(rt, site), make, "http_request", {"url": site.url("/?key=s3cr3t")})
    assert (job.status, job.error_class) == (S.RETRYING, "TRANSIENT_APP")
    assert job.last_error == f"GET {site.url()}: 503 Service Unavailable: busy"
    assert job.next_retry_at is not None
    assert 70 < (job.next_retry_at - job.updated_at).total_seconds() < 78
    assert "see later" in await log_of(rt, job.number)


async def test_expected_statuses_count_as_done(
    rt: Runtime, make: Factory, site: FaultyServer
) -> None:
    asks = configured(rt, site)
    payload = {"url": site.url("/gone"), "expect_status": [404]}
    assert (await done(asks, make, "http_request", payload)).status is S.COMPLETED
    site.routes["/"] = answer(b"fine")
    second = await done(asks, make, "http_request", {"url": site.url(), "expect_status": [201]})
    assert (second.status, second.error_class) == (S.FAILED, "INVALID_OUTPUT")


async def test_a_private_address_fails_for_good(
    rt: Runtime, make: Factory, site: FaultyServer
) -> None:
    job = await done(configured(rt), make, "http_request", {"url": site.url()})
    assert (job.status, job.error_class, site.requests) == (S.FAILED, "PERMANENT", [])
    assert (await last_event(rt, job.number, "job_failed")).payload["code"] == "address_refused"


async def test_a_credential_goes_to_its_origin_and_is_stored_nowhere(
    rt: Runtime, make: Factory, site: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_OF_TEST", "very-secret-token")
    site.routes["/"] = answer(b'{"you sent": "very-secret-token"}', content_type="application/json")
    entry = {"origin": site.url(""), "prefix": "Bearer ", "secret": {"env": "TOKEN_OF_TEST"}}
    asks = configured(rt, site, http={"credentials": {"it": entry}, "allow": [site.place]})
    job = await done(asks, make, "http_request", {"url": site.url(), "credential": "it"})
    assert site.requests[0].headers["authorization"] == "Bearer very-secret-token"
    assert job.result is not None
    assert job.result["body"] == {"you sent": "***"}
    other = {"url": "http://127.0.0.1:1/", "credential": "it"}
    failed = await done(asks, make, "http_request", other)
    assert (failed.status, failed.error_class) == (S.FAILED, "PERMANENT")
    monkeypatch.delenv("TOKEN_OF_TEST")
    missing = await done(asks, make, "http_request", {"url": site.url(), "credential": "it"})
    assert missing.status is S.RETRYING
    assert missing.last_error == (
        "credential 'it': the variable TOKEN_OF_TEST holds no secret on this worker"
    )


async def test_a_payload_is_checked_when_it_is_submitted(make: Factory) -> None:
    with pytest.raises(UsageError, match="payload of http_request: url: is required"):
        await make.queued(type="http_request")
    wrong = {"url": "http://a/", "output": {"maxItems": "9"}}
    with pytest.raises(UsageError, match="http_request: output: not a valid JSON Schema: '9'"):
        await make.queued(type="http_request", payload=wrong)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"call_timeout": 0.1}, "no complete response for 0.1 s (call limit)"),
        ({"idle_timeout": 0.1}, "no byte for 0.1 s (idle limit)"),
        ({"step_timeout": 0.1}, "step 'request' ran for 0.1 s (step limit)"),
        ({"timeout": 0.1}, "ran for 0.1 s (job limit, time spent waiting excluded)"),
    ],
    ids=str,
)
async def test_every_limit_fires_and_names_itself(
    rt: Runtime, make: Factory, site: FaultyServer, limits: dict[str, Any], expected: str
) -> None:
    site.routes["/"] = site.stall(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
    asks = configured(rt, site)
    job = await done(asks, make, "http_request", {"url": site.url()}, overrides=limits)
    assert job.last_error is not None
    assert job.last_error.endswith(expected)
    assert job.status is (S.FAILED if "timeout" in limits else S.RETRYING)


# -- webhooks


def receiver(site: FaultyServer, tmp: Any, secret: str = SECRET) -> dict[str, Any]:
    """Return the configuration of a receiver."""
    (tmp / "secret").write_text(secret + "\n")
    return {"hook": {"url": site.url("/hook"), "secret": {"file": str(tmp / "secret")}}}


async def test_an_event_is_signed_and_repeated_with_its_id(
    rt: Runtime, make: Factory, site: FaultyServer, tmp_path: Any
) -> None:
    site.routes["/hook"] = answer(b"", 500, "Oops")
    asks = configured(rt, webhooks=receiver(site, tmp_path), types={})
    payload = {"webhook": "hook", "type": "a.b", "data": {"n": 1}}
    first = await done(asks, make, "webhook_dispatch", payload)
    assert (first.status, first.error_class) == (S.RETRYING, "TRANSIENT_INFRA")
    [request] = site.requests
    assert verify(keys(SECRET), request.headers, request.body, time.time())
    assert not verify(keys("d" * 40), request.headers, request.body, time.time())
    body = json.loads(request.body)
    assert (body["type"], body["data"]) == ("a.b", {"n": 1})
    [step] = await rt.checkpoints.steps(first.number)
    assert request.headers["webhook-id"] == step.invocation_id


async def test_a_receiver_that_is_gone_or_moved_is_an_end(
    rt: Runtime, make: Factory, site: FaultyServer, tmp_path: Any
) -> None:
    asks = configured(rt, webhooks=receiver(site, tmp_path))
    payload = {"webhook": "hook", "type": "a.b"}
    for status in (410, 302):
        site.routes["/hook"] = answer(b"", status, "Gone", location=site.url("/other"))
        assert (await done(asks, make, "webhook_dispatch", payload)).status is S.FAILED
    site.routes["/hook"] = answer(b"", 204, "Fine")
    job = await done(asks, make, "webhook_dispatch", payload)
    assert job.result is not None
    assert job.result["webhook_id"] == site.requests[-1].headers["webhook-id"]
