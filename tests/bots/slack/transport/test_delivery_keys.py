"""A request is one job, however often and in whatever form it is delivered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from draftsman.database.database import Connection, Database
from draftsman_testing.slack.event_delivery import Delivery
from draftsman_testing.waits import wait_blocked
from tests.bots.slack.transport.conftest import JobTexts
from tests.bots.slack.transport.service_harness import ANNA, ServiceHarness


async def test_redelivered_event_creates_one_job(either: ServiceHarness, jobs: JobTexts) -> None:
    first = await either.slack.say(ANNA, either.general, "fix it")
    for attempt in (1, 2, 3):
        again = await either.slack.event_delivery.once(
            Delivery("events_api", first.sent, f"again-{attempt}", attempt)
        )
        assert again.acked
    assert await jobs.texts() == ["fix it"]


async def test_new_event_id_for_one_message_creates_one_job(
    either: ServiceHarness, jobs: JobTexts
) -> None:
    ack = await either.slack.say(ANNA, either.general, "fix it", copies=5, new_event_id=True)
    assert [copy.acked for copy in ack.copies] == [True] * 5
    assert await jobs.texts() == ["fix it"]


async def test_mention_and_message_events_create_one_job(
    either: ServiceHarness, jobs: JobTexts
) -> None:
    ack = await either.slack.mention(ANNA, either.general, "fix it", reordered=True)
    assert len(ack.copies) == 2
    assert len(await jobs.texts()) == 1


async def test_retry_without_a_first_copy_is_processed(
    either: ServiceHarness, jobs: JobTexts
) -> None:
    first = await either.slack.say(ANNA, either.general, "one")
    lost = {**first.sent, "event": {**first.sent["event"], "ts": "1.000002", "text": "two"}}
    ack = await either.slack.event_delivery.once(Delivery("events_api", lost, "lost", 2))
    assert ack.acked
    assert await jobs.texts() == ["one", "two"]


async def test_retry_during_the_first_commit_creates_one_job(
    http: ServiceHarness, jobs: JobTexts, db: Database, conn: Connection
) -> None:
    holder = await db.dedicated_connection()
    try:
        async with holder.transaction():
            await holder.execute("LOCK TABLE draftsman.job_states IN EXCLUSIVE MODE")
            sending = asyncio.create_task(
                http.slack.say(ANNA, http.general, "fix it", copies=2, new_event_id=True)
            )
            await wait_blocked(conn, by=holder.info.backend_pid, sessions=2)
        ack = await sending
    finally:
        await holder.close()
    assert [copy.status for copy in ack.copies] == [200, 200]
    assert await jobs.texts() == ["fix it"]


async def test_repeated_envelope_is_acknowledged_twice(
    socket: ServiceHarness, jobs: JobTexts
) -> None:
    ack = await socket.slack.command(ANNA, socket.general, "fix it", copies=2, same_envelope=True)
    assert [copy.acked for copy in ack.copies] == [True, True]
    assert len(socket.slack.sockets.acks) == 2
    assert await jobs.texts() == ["fix it"]


@pytest.mark.parametrize("text", ["fix the payload parser", "payload=", "a=b&payload={}"])
async def test_command_text_may_contain_payload(
    either: ServiceHarness, jobs: JobTexts, text: str
) -> None:
    ack = await either.slack.command(ANNA, either.general, text)
    assert ack.acked
    assert await jobs.texts() == [text]


async def test_replayed_request_creates_one_job(http: ServiceHarness, jobs: JobTexts) -> None:
    ack = await http.slack.command(ANNA, http.general, "fix it")
    again = await http.slack.event_delivery.once(Delivery("slash_commands", ack.sent, ""))
    assert again.status == 200
    assert again.body == ack.body
    assert await jobs.texts() == ["fix it"]


async def test_organization_install_without_a_team_is_accepted(
    either: ServiceHarness, jobs: JobTexts
) -> None:
    outer: dict[str, Any] = {
        "team_id": None,
        "enterprise_id": "E111",
        "is_enterprise_install": True,
    }
    outer["authorizations"] = [
        {"enterprise_id": "E111", "team_id": None, "is_enterprise_install": True}
    ]
    ack = await either.slack.say(ANNA, either.general, "of an org", extra=outer)
    assert ack.acked
    ack = await either.slack.command(
        ANNA, either.general, "too", extra={"team_id": "E111", "is_enterprise_install": "true"}
    )
    assert ack.acked
    assert await jobs.texts() == ["of an org", "too"]
