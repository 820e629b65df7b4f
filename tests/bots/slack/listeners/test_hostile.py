"""Payloads that Slack never sends are acknowledged without an effect."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from draftsman_testing.slack.event_delivery import Delivery
from tests.bots.slack.listeners.conftest import BEN, SlackBotHarness
from tests.bots.slack.test_inbound import CHANGED, COMMAND, GOOD, MESSAGE, PRESS, SUBMISSION

NOT_READ: list[dict[str, Any]] = [
    MESSAGE | {"event": None},
    MESSAGE | {"event": {"type": "message"}},
    MESSAGE | {"event": {"type": "app_home_opened"}},
    PRESS | {"actions": []},
    PRESS | {"user": None},
    PRESS | {"container": None, "message": None},
    SUBMISSION | {"view": {"id": "V1"}},
    SUBMISSION | {"view": {"id": "V1", "type": "modal", "callback_id": "x", "state": None}},
    COMMAND | {"user_id": ""},
    CHANGED | {"event": {"type": "message", "subtype": "message_changed"}},
]


@pytest.mark.parametrize("body", NOT_READ)
async def test_event_with_missing_fields_is_ignored(
    bench: SlackBotHarness, body: dict[str, Any]
) -> None:
    ack = await bench.slack.event_delivery.once(Delivery("events_api", copy.deepcopy(body), "e"))
    assert ack.status == 200
    assert await bench.jobs() == []


@pytest.mark.parametrize("body", GOOD)
async def test_every_field_may_be_null(bench: SlackBotHarness, body: dict[str, Any]) -> None:
    """One field at a time, also nested fields."""
    question, _ = await bench.asked()
    for name in body:
        await bench.slack.event_delivery.once(Delivery("events_api", body | {name: None}, "e"))
        if isinstance(inner := body[name], dict):
            for part in inner:
                spoilt = body | {name: inner | {part: None}}
                ack = await bench.slack.event_delivery.once(Delivery("events_api", spoilt, "e"))
                assert ack.status == 200
    assert await bench.is_open(question)
    await bench.slack.command(BEN, bench.general, "help")
