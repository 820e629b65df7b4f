"""Constraints of the messages to jobs, and of pauses of jobs."""

from __future__ import annotations

from typing import Final

import pytest

from draftsman.store.postgres.database import Connection
from tests.core.store.test_group_checks import insert
from tests.factories import Factory
from tests.support.statements import CHANGE, CHECK, UNIQUE, refused, run

MESSAGE: Final = {
    "job": "1",
    "ordinal": "1",
    "source": "'cli'",
    "source_event_id": "'e'",
    "sender_id": "'a'",
    "sender": "'a'",
    "text": "'x'",
}
MESSAGES: Final = [
    ({"ordinal": "0"}, "job_messages_ordinal_check"),
    ({"ordinal": "201"}, "job_messages_ordinal_check"),
    ({"source_event_id": "''"}, "job_messages_source_event_id_check"),
    ({"text": "''"}, "job_messages_text_check"),
    ({"text": "repeat('x', 10001)"}, "job_messages_text_check"),
    ({"delivered_at": "now()"}, "job_messages_delivered"),
]
PAUSE: Final = {"job": "1", "reason": "'r'", "paused_by": "'a'"}
PAUSES: Final = [
    ({"reason": "''"}, "job_pauses_reason_check"),
    ({"paused_by": "''"}, "job_pauses_paused_by_check"),
]
TABLES: Final = (MESSAGES, PAUSES)


@pytest.mark.parametrize(("wrong", "constraint"), MESSAGES)
async def test_a_message_is_complete(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert("job_messages", MESSAGE | wrong))


@pytest.mark.parametrize(("wrong", "constraint"), PAUSES)
async def test_a_pause_is_complete(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert("job_pauses", PAUSE | wrong))


async def test_an_event_is_a_single_message_that_never_changes(
    make: Factory, conn: Connection
) -> None:
    stored = MESSAGE | {"job": str(await make.queued())}
    await run(conn, insert("job_messages", stored))
    async with refused(UNIQUE, '"job_messages_event"'):
        await run(conn, insert("job_messages", stored | {"ordinal": "2"}))
    for statement in ("DELETE FROM {}", "TRUNCATE {}"):
        async with refused(CHANGE, "messages to jobs are never deleted"):
            await run(conn, statement.format("draftsman.job_messages"))
    async with refused(CHANGE, "a message to a job is immutable"):
        await run(conn, "UPDATE draftsman.job_messages SET text = 'other'")
    await run(conn, "UPDATE draftsman.job_messages SET run = 1, delivered_at = now()")
    async with refused(CHANGE, "a delivered message is immutable"):
        await run(conn, "UPDATE draftsman.job_messages SET delivered_at = NULL")
