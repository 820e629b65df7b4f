"""Slack requests of the benchmarks: valid, signed, and each a different event."""

from __future__ import annotations

import json
import time

import pytest

from bench import slack
from bench.server import BenchError
from draftsman_bots.slack.payloads import payloads
from draftsman_bots.slack.transport import http_app as signature


def parts(request: bytes) -> tuple[dict[str, str], bytes]:
    head, _, body = request.partition(b"\r\n\r\n")
    lines = [line.split(": ", 1) for line in head.decode().split("\r\n")[1:]]
    return {name.lower(): value for name, value in lines}, body


def test_every_event_is_signed_and_distinct() -> None:
    events = []
    for number in range(3):
        headers, body = parts(slack._request(number))
        signature.check(slack.SECRET, headers, body, time.time())
        events.append(payloads.parse_message(json.loads(body), "U00000BOT1"))
    assert len({event.key for event in events if event}) == 3
    assert [event.text for event in events if event] == [f"fix thing {n}" for n in range(3)]


async def test_bare_bolt_app_acknowledges_events() -> None:
    async with slack._api() as api, slack._served(slack.BARE, {"BENCH_API": api}) as port:
        figures = await slack._sent(port, 20)
    assert figures["p99_ms"] >= figures["p50_ms"] > 0


async def test_rejected_event_raises_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async with slack._api() as api, slack._served(slack.BARE, {"BENCH_API": api}) as port:
        monkeypatch.setattr(slack, "SECRET", "another")
        with pytest.raises(BenchError, match="answered with 401"):
            await slack._sent(port, 20)
