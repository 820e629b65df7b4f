"""The HTTP endpoint: rejected and ignored requests, and health."""

from __future__ import annotations

import io
import json
import time
from typing import Any

import aiohttp
import pytest

from tests.bots.slack.transport.conftest import JobTexts
from tests.bots.slack.transport.service_harness import ANNA, ServiceHarness

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}
CHALLENGE = json.dumps({"type": "url_verification", "challenge": "abc", "token": "x"}).encode()


async def _read(rig: ServiceHarness, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(rig.url + path) as reply:
        return reply.status, await reply.text()


async def test_mismatched_content_type_is_refused(http: ServiceHarness) -> None:
    requests: list[tuple[bytes, dict[str, str], int]] = [
        (b"command=%2Fdraftsman&text=x", JSON, 400),
        (b'{"type": "event_callback"}', FORM, 200),  # a form with one strange field
        (b"command=%2Fdraftsman", {"Content-Type": "text/plain"}, 400),
        (b"command=%2Fdraftsman", {"Content-Type": ""}, 400),
        (b"\xff\xfe", JSON, 400),
    ]
    result = [
        (await http.slack.event_delivery.post(body, headers)).status
        for body, headers, _ in requests
    ]
    assert result == [status for *_, status in requests]


async def test_malformed_body_is_refused_after_the_signature_check(http: ServiceHarness) -> None:
    forms = [b"", b"payload=", b"payload=null", b"payload=%5B%5D"]
    forms += [b"&".join(b"a%d=1" % n for n in range(200))]
    objects = [b"{", b"[]", b"", b"null", b'{"a": NaN}', b"[" * 100_000]
    bodies = [(body, FORM) for body in forms] + [(body, JSON) for body in objects]
    post = http.slack.event_delivery.post
    assert [(await post(*item)).status for item in bodies] == [400] * len(bodies)
    assert [(await post(*item, sign=False)).status for item in bodies] == [401] * len(bodies)


NO_USER = {"type": "block_actions", "actions": [{"action_id": "x"}]}
USER = {"user": {"id": ANNA}}


LACKING: list[dict[str, Any]] = [
    {"type": "event_callback", "event": None},
    {"type": "event_callback", "event": []},
    {"type": "event_callback", "event": {"type": 5}},
    {"type": "event_callback", "event": {"type": "message"}, "authorizations": 5},
    {"type": "block_actions", "actions": [], **USER},
    {"type": "block_actions", "actions": [None], **USER},
    {**NO_USER, "user": None},
    {**NO_USER, "user": "U1"},
    {"type": "view_submission", "view": {"id": "V1"}, **USER},
    {"type": "view_submission", "view": None, **USER},
    {"type": "view_closed", **USER},
    {"type": "shortcut", **USER},
    {"type": "message_action", "callback_id": {}, **USER},
    {"type": "block_suggestion"},
    {"type": {}},
    {"type": "of tomorrow"},
    {},
]


async def test_interaction_with_missing_fields_is_ignored(either: ServiceHarness) -> None:
    for payload in LACKING:
        assert (await either.slack.interactive(payload)).status == 200, payload
    assert either.outcomes() == {"ignored": len(LACKING)}


async def test_body_over_one_mebibyte_is_refused(http: ServiceHarness) -> None:
    body = b"a" * (1024 * 1024 + 1)

    async def in_pieces() -> Any:
        for _ in range(17):
            yield b"a" * 65_536

    async with aiohttp.ClientSession() as session:
        for stream in (io.BytesIO(body), in_pieces()):
            async with session.post(str(http.slack.request_url), data=stream) as reply:
                assert reply.status == 413
        async with session.post(str(http.slack.request_url), data=io.BytesIO(body[1:])) as reply:
            assert reply.status == 401


async def test_invalid_timestamp_or_signature_is_refused(http: ServiceHarness) -> None:
    stamps = ["abc", "", "1e9", "-5", "\u0663", "9" * 400, "1 2", "+1"]
    signatures = ["v0=\u00e9", "", "v0=", "v1=" + "0" * 64, "v0=" + "0" * 64]
    invalid_headers = [{"X-Slack-Request-Timestamp": stamp} for stamp in stamps]
    invalid_headers += [{"X-Slack-Signature": signature} for signature in signatures]
    result = [
        (await http.slack.event_delivery.post(CHALLENGE, JSON | item)).status
        for item in invalid_headers
    ]
    assert result == [401] * len(invalid_headers)


@pytest.mark.parametrize("ahead", [-600, 600])
async def test_clock_skew_is_refused_and_reported(http: ServiceHarness, ahead: int) -> None:
    signed = http.slack.event_delivery.signed(CHALLENGE, int(time.time()) + ahead)
    ack = await http.slack.event_delivery.post(CHALLENGE, JSON | signed, sign=False)
    assert ack.status == 401
    status, text = await _read(http, "/readyz")
    assert status == 503
    assert "clock skew" in text
    assert (await http.slack.event_delivery.post(CHALLENGE, JSON)).status == 200
    assert (await _read(http, "/readyz"))[0] == 200


async def test_unsigned_verification_is_refused(http: ServiceHarness) -> None:
    post = http.slack.event_delivery.post
    assert (await post(CHALLENGE, JSON, sign=False)).status == 401
    assert (await post(b"ssl_check=1&token=x", FORM, sign=False)).status == 401
    assert (await post(b"ssl_check=1&token=x", FORM)).status == 200
    signed = await post(CHALLENGE, JSON)
    assert (signed.status, signed.body) == (200, "abc")


async def test_unhandled_event_is_acknowledged(either: ServiceHarness, jobs: JobTexts) -> None:
    ack = await either.slack.event({"type": "of_tomorrow", "user": ANNA})
    assert ack.status == 200
    assert await jobs.texts() == []


async def test_endpoint_accepts_only_post(http: ServiceHarness) -> None:
    async with aiohttp.ClientSession() as session:
        for method in ("GET", "PUT", "DELETE", "HEAD", "OPTIONS"):
            async with session.request(method, str(http.slack.request_url)) as reply:
                assert reply.status == 405
            async with session.request(method, http.url + "/elsewhere") as reply:
                assert reply.status == 404


async def test_health_endpoints_show_the_state_of_the_bot(http: ServiceHarness) -> None:
    assert await _read(http, "/healthz") == (200, "alive\n")
    assert (await _read(http, "/readyz"))[0] == 200
    await http.slack.command(ANNA, http.general, "fix it")
    http.health.problem("socket", "that is wrong")
    status, text = await _read(http, "/readyz")
    assert (status, json.loads(text)["problems"]) == (503, {"socket": "that is wrong"})
    assert (await _read(http, "/healthz"))[0] == 200
    status, text = await _read(http, "/metrics")
    assert 'draftsman_slack_requests_total{kind="command",outcome="done"} 1.0' in text
    assert "draftsman_slack_problems 1.0" in text


async def test_a_secret_is_in_no_log(
    http: ServiceHarness, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pasted secrets, and secrets in errors."""
    from draftsman.log import redact

    pasted = "xoxb-111111111111-222222222222-abcdefghijklmnop"
    await http.slack.command(ANNA, http.general, pasted, name="/fails")
    await http.slack.event_delivery.post(pasted.encode(), JSON)
    await http.slack.event_delivery.post(pasted.encode(), JSON, sign=False)
    await http.slack.interactive({"type": "block_actions", "user": pasted})
    assert caplog.records
    text = "\n".join(redact(caplog.handler.format(record)) for record in caplog.records)
    for secret in (pasted, http.slack.bot_token, http.slack.signing_secret, "123456789012"):
        assert secret not in text
