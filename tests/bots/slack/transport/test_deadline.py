"""Slack gets a response in time whatever the database does, and no 200 before the commit.

The fake accepts no response after three seconds.
"""

from __future__ import annotations

import asyncio
from typing import Any

from draftsman.database.database import Database
from draftsman.runtime import Runtime
from draftsman_bots.slack.transport import acknowledgments
from draftsman_testing.slack import Fault
from tests.bots.slack.transport.conftest import JobTexts
from tests.bots.slack.transport.service_harness import ANNA, ServiceHarness

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


async def test_slow_database_answers_before_the_slack_deadline(
    either: ServiceHarness, jobs: JobTexts, db: Database
) -> None:
    holder = await db.dedicated_connection()
    slack = either.slack
    try:
        async with holder.transaction():
            await holder.execute("LOCK TABLE draftsman.job_states IN ACCESS EXCLUSIVE MODE")
            slack.event_delivery.patience = 6.0  # more than Slack's: other tests run beside it
            event, command, view = await asyncio.gather(
                slack.say(ANNA, either.general, "fix it"),
                slack.command(ANNA, either.general, "fix that"),
                slack.interactive(MODAL),
            )
    finally:
        await holder.close()
    assert event.status == (503 if slack.request_url else None)
    assert command.body == {"response_type": "ephemeral", "text": acknowledgments.RETRY_LATER}
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


async def test_refusal_is_sent_to_its_author(either: ServiceHarness, jobs: JobTexts) -> None:
    stranger = either.slack.user("mallory")
    ack = await either.slack.command(stranger, either.general, "fix it")
    assert ack.body["response_type"] == "ephemeral"
    assert "mallory" in ack.body["text"] or stranger in ack.body["text"]
    assert (await either.slack.say(stranger, either.general, "fix it")).status == 200
    assert await jobs.texts() == []
