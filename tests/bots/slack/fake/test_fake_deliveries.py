"""Duplicate, changed, reordered and retried deliveries of the fake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.response import BoltResponse

from draftsman_testing.slack import FakeSlack
from draftsman_testing.slack.bolt_adapters import bolt_app, by_http, by_socket

Json = dict[str, Any]


class Seen:
    """Received payloads, and the number of failures left."""

    def __init__(self, app: AsyncApp, failures: int = 0, **headers: str | Sequence[str]) -> None:
        self.bodies: list[Json] = []
        self.retries: list[str] = []
        self.failures = failures
        self._headers = headers
        app.middleware(self.look)

    async def look(self, req: Any) -> BoltResponse:
        self.bodies.append(req.body)
        self.retries += req.headers.get("x-slack-retry-num", [])
        if self.failures:
            self.failures -= 1
            return BoltResponse(status=500, headers=self._headers)
        return BoltResponse(status=200)


async def test_event_is_delivered_in_copies_with_new_ids(
    slack: FakeSlack, general: str, anna: str
) -> None:
    app = bolt_app(slack)
    seen = Seen(app)
    async with by_socket(app, slack):
        same = await slack.say(anna, general, "one", copies=3)
        other = await slack.say(anna, general, "two", copies=3, new_event_id=True)
    assert [len(done.copies) for done in (same, other)] == [3, 3]
    ids = [body["event_id"] for body in seen.bodies]
    assert len(set(ids[:3])) == 1
    assert len(set(ids[3:])) == 3
    assert len({body["event"]["ts"] for body in seen.bodies[3:]}) == 1


async def test_same_envelope_is_delivered_on_two_sockets(
    slack: FakeSlack, general: str, anna: str
) -> None:
    app = bolt_app(slack)
    seen = Seen(app)
    async with by_socket(app, slack), by_socket(app, slack):
        assert slack.sockets.count == 2
        done = await slack.command(anna, general, "help", copies=2, same_envelope=True)
    assert [copy.acked for copy in done.copies] == [True, True]
    assert len(seen.bodies) == 2
    assert len(set(slack.sockets.acks)) == 1


async def test_both_copies_of_a_mention_come_in_either_order(
    slack: FakeSlack, general: str, anna: str
) -> None:
    app = bolt_app(slack)
    seen = Seen(app)
    async with by_socket(app, slack):
        await slack.mention(anna, general, "one")
        await slack.mention(anna, general, "two", reordered=True)
    kinds = [body["event"]["type"] for body in seen.bodies]
    assert kinds == ["message", "app_mention", "app_mention", "message"]


@pytest.mark.parametrize("mode", ["socket", "http"])
async def test_unacknowledged_delivery_is_retried(
    slack: FakeSlack, general: str, anna: str, mode: str
) -> None:
    app = bolt_app(slack)
    seen = Seen(app, failures=2)
    connected = by_socket if mode == "socket" else by_http
    slack.event_delivery.patience = 0.3
    async with connected(app, slack):
        done = await slack.say(anna, general, "one", retries=3)
    assert (done.acked, done.attempts) == (True, 3)
    assert [number for number in seen.retries if number != "0"] == ["1", "2"]
    assert len({body["event_id"] for body in seen.bodies}) == 1


async def test_retries_arrive_without_or_after_the_first_copy(
    slack: FakeSlack, general: str, anna: str
) -> None:
    app = bolt_app(slack)
    seen = Seen(app)
    async with by_http(app, slack):
        await slack.say(anna, general, "one", attempt=2)
        done = await slack.say(anna, general, "two")
        await slack.again(done)
        await slack.again(done, attempt=1)
    assert seen.retries == ["2", "1"]
    texts = [body["event"]["text"] for body in seen.bodies]
    assert texts == ["one", "two", "two", "two"]
    assert len({body["event_id"] for body in seen.bodies[1:]}) == 1


async def test_no_retry_header_stops_retries(slack: FakeSlack, general: str, anna: str) -> None:
    app = bolt_app(slack)
    seen = Seen(app, failures=9, **{"x-slack-no-retry": "1"})
    async with by_http(app, slack):
        done = await slack.say(anna, general, "one", retries=3)
    assert (done.status, len(seen.bodies)) == (500, 1)


async def test_response_after_the_deadline_counts_as_missing(
    slack: FakeSlack, general: str, anna: str
) -> None:
    slack.event_delivery.patience = 0.01
    assert (await slack.command(anna, general, "help")).status is None
    slack.request_url = "http://127.0.0.1:9/slack/events"
    assert (await slack.command(anna, general, "help")).status is None


async def test_http_deliveries_are_signed(slack: FakeSlack, general: str, anna: str) -> None:
    app = bolt_app(slack)
    Seen(app)
    async with by_http(app, slack):
        assert (await slack.say(anna, general, "one")).status == 200
        body = b'{"type": "event_callback"}'
        kind = {"Content-Type": "application/json"}
        assert (await slack.event_delivery.post(body, kind, sign=False)).status == 401
        old = slack.event_delivery.signed(body, timestamp=1_000_000_000)
        assert (await slack.event_delivery.post(body, kind | old)).status == 401
        assert (await slack.event_delivery.post(body, kind)).status == 200


async def test_payloads_can_be_extended_or_replaced(
    slack: FakeSlack, general: str, anna: str
) -> None:
    app = bolt_app(slack)
    seen = Seen(app)
    async with by_socket(app, slack):
        await slack.command(anna, general, "help", extra={"enterprise_id": "E1"})
        await slack.event({"type": "tokens_revoked", "tokens": {"bot": [slack.bot_user]}})
        await slack.interactive({"type": "shortcut", "callback_id": 7})
    assert seen.bodies[0]["enterprise_id"] == "E1"
    assert seen.bodies[1]["event"]["type"] == "tokens_revoked"
    assert seen.bodies[2] == {"type": "shortcut", "callback_id": 7}


async def test_user_of_another_workspace_is_external(slack: FakeSlack) -> None:
    app = bolt_app(slack)
    seen = Seen(app)
    mallory = slack.user("mallory", team="T0OTHER")
    shared = slack.channel("shared", [mallory], shared=True)
    async with by_socket(app, slack):
        await slack.say(mallory, shared, "one")
        await slack.command(mallory, shared, "help")
    assert seen.bodies[0]["is_ext_shared_channel"] is True
    assert seen.bodies[0]["event"]["team"] == "T0OTHER"
    assert seen.bodies[1]["team_id"] == "T0OTHER"
