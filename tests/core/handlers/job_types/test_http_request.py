"""`http_request` and `webhook_dispatch` jobs and the responses that they receive."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest
from respx import MockRouter

from draftsman.errors import UsageError
from draftsman.jobs.job import Status
from draftsman.outbound.webhook_signature import keys, verify
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.handlers.job_types.web_jobs import SECRET, SITE, configured, done, log_of, result_of
from tests.core.worker.workers import last_event
from tests.support.faulty_server import head, web

S = Status


async def test_the_response_is_the_result(
    rt: Runtime, make: Factory, respx_mock: MockRouter
) -> None:
    headers = {"content-type": "application/json", "x-a": "b", "set-cookie": "s=1"}
    route = respx_mock.get(f"{SITE}a").respond(content=b'{"n": [1, 2]}', headers=headers)
    payload = {"url": f"{SITE}a", "query": {"q": "x y"}, "headers": {"X-Own": "1"}}
    job = await done(configured(rt), make, "http_request", payload)
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
        "url": f"{SITE}a?q=x+y",
        "body": {"n": [1, 2]},
        "encoding": "json",
        "bytes": 13,
    }
    [(request, _)] = route.calls
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
async def test_binary_responses_are_encoded(
    rt: Runtime,
    make: Factory,
    respx_mock: MockRouter,
    kind: str,
    data: bytes,
    body: str,
    encoding: str,
    replaced: bool | None,
) -> None:
    respx_mock.get(SITE).respond(content=data, content_type=kind)
    job = await done(configured(rt), make, "http_request", {"url": SITE})
    assert job.result is not None, job.last_error
    result = (job.result["body"], job.result["encoding"], job.result.get("replaced"))
    assert result == (body, encoding, replaced)


async def test_a_long_response_is_an_artifact(
    rt: Runtime, make: Factory, respx_mock: MockRouter
) -> None:
    respx_mock.get(SITE).respond(text="a" * 300_000)
    job = await done(configured(rt), make, "http_request", {"url": SITE})
    assert job.result is not None
    assert (job.result["body"], job.result["artifact"]) == (None, "response")
    assert await result_of(rt, job.number) == {"response": b"a" * 300_000}


async def test_a_response_that_does_not_match_its_schema_fails_and_is_stored(
    rt: Runtime, make: Factory, respx_mock: MockRouter
) -> None:
    respx_mock.get(SITE).respond(content=b'{"n": "one"}', content_type="application/json")
    output_schema = {"properties": {"n": {"type": "integer"}}}
    job = await done(configured(rt), make, "http_request", {"url": SITE, "output": output_schema})
    assert (job.status, job.error_class) == (S.FAILED, "INVALID_OUTPUT")
    assert job.last_error == (
        f"response of {SITE} does not match its schema: n: must be a whole number, not 'one'"
        f"; to see it: draftsman artifacts get D-{job.number} invalid-output"
    )
    assert await result_of(rt, job.number) == {"invalid-output": b'{"n": "one"}'}


async def test_an_error_response_gives_the_error_and_the_retry_time(
    rt: Runtime, make: Factory, respx_mock: MockRouter
) -> None:
    respx_mock.get(SITE).respond(503, text="busy\nsee later", headers={"retry-after": "77"})
    payload = {"url": f"{SITE}?key=s3cr3t"}
    job = await done(configured(rt), make, "http_request", payload)
    assert (job.status, job.error_class) == (S.RETRYING, "TRANSIENT_APP")
    assert job.last_error == f"GET {SITE}: 503 Service Unavailable: busy"
    assert job.next_retry_at is not None
    assert 70 < (job.next_retry_at - job.updated_at).total_seconds() < 78
    assert "see later" in await log_of(rt, job.number)


async def test_expected_statuses_count_as_done(
    rt: Runtime, make: Factory, respx_mock: MockRouter
) -> None:
    asks = configured(rt)
    respx_mock.get(f"{SITE}gone").respond(404)
    payload = {"url": f"{SITE}gone", "expect_status": [404]}
    assert (await done(asks, make, "http_request", payload)).status is S.COMPLETED
    respx_mock.get(SITE).respond(text="fine")
    second = await done(asks, make, "http_request", {"url": SITE, "expect_status": [201]})
    assert (second.status, second.error_class) == (S.FAILED, "INVALID_OUTPUT")


async def test_a_private_address_is_a_permanent_failure(
    rt: Runtime, make: Factory, respx_mock: MockRouter
) -> None:
    job = await done(configured(rt, "127.0.0.1:2"), make, "http_request", {"url": SITE})
    assert (job.status, job.error_class) == (S.FAILED, "PERMANENT")
    assert not respx_mock.calls
    assert (await last_event(rt, job.number, "job_failed")).payload["code"] == "address_refused"


async def test_a_credential_goes_to_its_origin_and_is_stored_nowhere(
    rt: Runtime, make: Factory, respx_mock: MockRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_OF_TEST", "very-secret-token")
    route = respx_mock.get(SITE).respond(json={"you sent": "very-secret-token"})
    entry = {"origin": SITE[:-1], "prefix": "Bearer ", "secret": {"env": "TOKEN_OF_TEST"}}
    asks = configured(rt, http={"credentials": {"it": entry}})
    job = await done(asks, make, "http_request", {"url": SITE, "credential": "it"})
    assert route.calls[0].request.headers["authorization"] == "Bearer very-secret-token"
    assert job.result is not None
    assert job.result["body"] == {"you sent": "***"}
    other = {"url": "http://127.0.0.1:2/", "credential": "it"}
    failed = await done(asks, make, "http_request", other)
    assert (failed.status, failed.error_class) == (S.FAILED, "PERMANENT")
    monkeypatch.delenv("TOKEN_OF_TEST")
    missing = await done(asks, make, "http_request", {"url": SITE, "credential": "it"})
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
async def test_every_timeout_is_named_in_its_error(
    rt: Runtime, make: Factory, limits: dict[str, Any], expected: str
) -> None:
    async with web() as site:
        site.routes["/"] = site.stall(head(content_length="9") + b"half")
        asks = configured(rt, site.place)
        payload = {"url": site.url()}
        job = await done(asks, make, "http_request", payload, overrides=limits)
    assert job.last_error is not None
    assert job.last_error.endswith(expected)
    assert job.status is (S.FAILED if "timeout" in limits else S.RETRYING)


# -- webhooks


@pytest.fixture
def hook(rt: Runtime, tmp_path: Path) -> Runtime:
    """Give services that may call the receiver `hook` only."""
    (tmp_path / "secret").write_text(SECRET + "\n")
    entry = {"url": f"{SITE}hook", "secret": {"file": str(tmp_path / "secret")}}
    return configured(rt, "127.0.0.1:2", webhooks={"hook": entry})


async def test_an_event_is_signed_and_repeated_with_its_id(
    hook: Runtime, make: Factory, respx_mock: MockRouter
) -> None:
    route = respx_mock.post(f"{SITE}hook").respond(500)
    payload = {"webhook": "hook", "type": "a.b", "data": {"n": 1}}
    first = await done(hook, make, "webhook_dispatch", payload)
    assert (first.status, first.error_class) == (S.RETRYING, "TRANSIENT_INFRA")
    [(request, _)] = route.calls
    assert verify(keys(SECRET), request.headers, request.content, time.time())
    assert not verify(keys("d" * 40), request.headers, request.content, time.time())
    body = json.loads(request.content)
    assert (body["type"], body["data"]) == ("a.b", {"n": 1})
    [step] = await hook.checkpoints.steps(first.number)
    assert request.headers["webhook-id"] == step.invocation_id


async def test_a_receiver_that_is_gone_or_moved_fails_the_job(
    hook: Runtime, make: Factory, respx_mock: MockRouter
) -> None:
    route = respx_mock.post(f"{SITE}hook")
    payload = {"webhook": "hook", "type": "a.b"}
    for status in (410, 302):
        route.respond(status, headers={"location": f"{SITE}other"})
        assert (await done(hook, make, "webhook_dispatch", payload)).status is S.FAILED
    route.respond(204)
    job = await done(hook, make, "webhook_dispatch", payload)
    assert job.result is not None
    assert job.result["webhook_id"] == route.calls.last.request.headers["webhook-id"]
