"""Slack gets a response in time whatever the database does, and no 200 before the commit.

The fake accepts no response after three seconds.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any, Final
from urllib.parse import urlencode

import pytest

from draftsman.database.database import Database
from draftsman.runtime import Runtime
from draftsman_bots.slack.plugin import SLACK
from draftsman_bots.slack.transport import acknowledgments, dispatcher, http_app
from draftsman_testing.slack import Fault
from draftsman_testing.slack.event_delivery import PATIENCE
from tests.bots.slack.transport.conftest import JobTexts
from tests.bots.slack.transport.service_harness import ANNA, ServiceHarness
from tests.support.clock import skip

HOUR: Final = 3600.0
SECONDS: Final = 20.0
"""Deadline of each wait."""

MODAL = {
    "type": "view_submission",
    "user": {"id": ANNA},
    "view": {
        "id": "V1",
        "callback_id": "ask",
        "type": "modal",
        "blocks": [{"type": "section"}, {"type": "input", "block_id": "what"}],
    },
}


def _command(name: str) -> dict[str, Any]:
    return {
        "command": name,
        "text": "x",
        "user_id": ANNA,
        "team_id": "T1",
        "channel_id": "C1",
        "trigger_id": "1",
        "response_url": "https://example.org/",
    }


def _reply(text: str) -> dict[str, str]:
    return {"response_type": "ephemeral", "text": text}


async def test_slow_database_answers_before_the_slack_deadline(
    either: ServiceHarness, jobs: JobTexts, db: Database
) -> None:
    holder = await db.dedicated_connection()
    slack = either.slack
    try:
        async with holder.transaction():
            await holder.execute("LOCK TABLE draftsman.job_states IN ACCESS EXCLUSIVE MODE")
            event, command, view = await asyncio.gather(
                slack.say(ANNA, either.general, "fix it"),
                slack.command(ANNA, either.general, "fix that"),
                slack.interactive(MODAL),
            )
    finally:
        await holder.close()
    assert event.status == (503 if slack.request_url else None)
    assert command.body == _reply(acknowledgments.RETRY_LATER)
    assert view.body == {
        "response_action": "errors",
        "errors": {"what": acknowledgments.RETRY_LATER},
    }
    assert await jobs.texts() == []
    assert (await slack.event(event.sent)).acked
    assert await jobs.texts() == ["fix it"]


async def test_database_outage_is_not_acknowledged(
    either: ServiceHarness, jobs: JobTexts, patient: Runtime
) -> None:
    await patient.db.close()
    either.slack.event_delivery.patience = 1.0
    event = await either.slack.say(ANNA, either.general, "fix it")
    assert not event.acked
    command = await either.slack.command(ANNA, either.general, "fix that")
    assert command.body["text"] == acknowledgments.RETRY_LATER
    await patient.db.open()
    again = await either.slack.event(event.sent, retries=3)
    assert (again.acked, again.attempts) == (True, 1)
    assert await jobs.texts() == ["fix it"]


async def test_intake_works_while_the_slack_api_is_down(
    http: ServiceHarness, jobs: JobTexts
) -> None:
    http.slack.faults.random(1, {Fault.DROP_BEFORE: 1.0})
    assert (await http.slack.say(ANNA, http.general, "fix it")).status == 200
    assert await jobs.texts() == ["fix it"]
    assert http.slack.calls == []


async def test_poison_event_is_not_redelivered(either: ServiceHarness) -> None:
    poison: dict[str, Any] = {"type": "reaction_added", "user": ANNA}
    ack = await either.slack.event(poison, retries=3)
    assert ack.attempts == 1
    assert ack.status == (500 if either.slack.request_url else 200)
    ack = await either.slack.command(ANNA, either.general, "x", name="/fails")
    assert ack.body["text"] == acknowledgments.INTERNAL_ERROR
    assert either.outcomes() == {"error": 2}


async def test_command_that_cannot_be_canceled_is_reported_as_in_doubt(
    http: ServiceHarness,
) -> None:
    stuck, waits = await asyncio.gather(
        *(http.slack.command(ANNA, http.general, "x", name=name) for name in ("/stuck", "/waits"))
    )
    assert stuck.body["text"] == acknowledgments.IN_DOUBT
    assert waits.body["text"] == acknowledgments.RETRY_LATER


def test_the_server_is_the_first_to_give_up_and_slack_the_last() -> None:
    assert SLACK.statement_timeout is not None
    assert SLACK.statement_timeout < dispatcher.LISTENER_TIMEOUT < dispatcher.DEADLINE < PATIENCE


async def test_a_busy_loop_delays_no_acknowledgment_twice(
    http: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "DEADLINE", HOUR)
    arrived = asyncio.get_running_loop().time()
    async with asyncio.timeout_at(arrived + HOUR + SECONDS):
        answering = asyncio.create_task(http.bot.answer(_command("/stuck"), arrived=arrived))
        await http.listeners.began.wait()
        skip(HOUR)
        acknowledgment = await answering
    assert acknowledgment.body == _reply(acknowledgments.IN_DOUBT)


async def test_the_arrival_of_the_body_counts(
    http: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "LISTENER_TIMEOUT", HOUR)
    monkeypatch.setattr(dispatcher, "DEADLINE", 2 * HOUR)
    monkeypatch.setattr(http_app, "DEADLINE", 2 * HOUR)
    body = urlencode(_command("/waits")).encode()
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        skip(HOUR)
        return {"type": "http.request", "body": body}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    form = {"content-type": "application/x-www-form-urlencoded"}
    headers = http.slack.event_delivery.signed(body) | form
    scope = {
        "type": "http",
        "method": "POST",
        "path": http_app.EVENTS_PATH,
        "headers": [(key.lower().encode(), text.encode()) for key, text in headers.items()],
    }
    app = http_app.application(http.bot, http.slack.signing_secret, http.health)
    async with asyncio.timeout(HOUR + SECONDS):
        await app(scope, receive, send)
    assert json.loads(sent[1]["body"]) == _reply(acknowledgments.RETRY_LATER)


async def test_refusal_is_sent_to_its_author(either: ServiceHarness, jobs: JobTexts) -> None:
    stranger = either.slack.user("mallory")
    ack = await either.slack.command(stranger, either.general, "fix it")
    assert ack.body["response_type"] == "ephemeral"
    assert "mallory" in ack.body["text"] or stranger in ack.body["text"]
    assert (await either.slack.say(stranger, either.general, "fix it")).status == 200
    assert await jobs.texts() == []
