"""Constraints of the messages to jobs, of pauses of jobs, and of their failures."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection
from draftsman_testing.factories import Factory
from tests.core.database.test_group_checks import insert
from tests.support.cases import cases
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
DISMISSAL: Final = {"job": "1", "dismissed_by": "'a'"}
FAILURES: Final = [
    ("open_failures", {"job": "1", "status": "'completed'"}, "open_failures_status_check"),
    ("dismissals", DISMISSAL | {"reason": "''"}, "dismissals_reason_check"),
    ("dismissals", DISMISSAL | {"dismissed_by": "''"}, "dismissals_dismissed_by_check"),
]
FILE: Final = {"channel": "'slack'", "reference": "'{}'", "name": "'a.txt'"}
REFUSED: Final = {"status": "'refused'", "reason": "'r'", "ended_at": "now()"}
FILES: Final = [
    ({"reference": "jsonb_build_object('a', repeat('x', 8001))"}, "attachments_reference_check"),
    *(
        ({"name": name}, "attachments_name_check")
        for name in ("''", "'a/b'", "'a\\b'", "'.git'", "E'a\nb'", "repeat('x', 121)")
    ),
    ({"media_type": "repeat('x', 201)"}, "attachments_media_type_check"),
    ({"status": "'gone'", "ended_at": "now()"}, "attachments_status_check"),
    (REFUSED | {"reason": "''"}, "attachments_reason_check"),
    (REFUSED | {"reason": "NULL"}, "attachments_refused"),
    (REFUSED | {"ended_at": "NULL"}, "attachments_ended"),
    ({"size": "1"}, "attachments_stored"),
    ({"sha256": "'x'"}, "attachments_stored"),
    ({"size": "10485761", "sha256": "'x'"}, "attachments_size_check"),
]
LINKS: Final = [
    ({"ordinal": "0"}, "job_attachments_ordinal_check"),
    ({"ordinal": "21"}, "job_attachments_ordinal_check"),
    ({"message": "0"}, "job_attachments_message_check"),
]
LINK: Final = {"job": "1", "ordinal": "1", "attachment": "1"}
CONTENTS: Final = [
    ({"data": "decode(repeat('00', 10485761), 'hex')"}, "attachment_contents_data_check"),
]
TABLES: Final = (MESSAGES, PAUSES, [row[1:] for row in FAILURES], FILES, LINKS, CONTENTS)


@cases(("wrong", "constraint"), MESSAGES)
async def test_a_message_is_complete(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert("job_messages", MESSAGE | wrong))


@cases(("wrong", "constraint"), PAUSES)
async def test_a_pause_is_complete(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert("job_pauses", PAUSE | wrong))


@cases(("table", "wrong", "constraint"), FAILURES)
async def test_a_failure_and_its_dismissal_are_complete(
    conn: Connection, table: str, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert(table, wrong))


@cases(
    ("table", "wrong", "constraint"),
    [
        *(("attachments", FILE | wrong, name) for wrong, name in FILES),
        *(("job_attachments", LINK | wrong, name) for wrong, name in LINKS),
        *(("attachment_contents", {"attachment": "1"} | wrong, name) for wrong, name in CONTENTS),
    ],
)
async def test_an_attachment_is_complete(
    conn: Connection, table: str, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert(table, wrong))


async def test_an_attachment_that_ended_never_changes(make: Factory, conn: Connection) -> None:
    number = await make.queued()
    await run(conn, insert("attachments", FILE))
    link = LINK | {"job": str(number), "attachment": "(SELECT id FROM draftsman.attachments)"}
    await run(conn, insert("job_attachments", link))
    stored = {"attachment": link["attachment"], "data": "'x'"}
    await run(conn, insert("attachment_contents", stored))
    for table, problem in (
        ("attachment_contents", "a stored attachment is immutable"),
        ("job_attachments", "the attachments of a job are never changed"),
        ("attachments", "attachments are never deleted"),
    ):
        async with refused(CHANGE, problem):
            await run(conn, f"DELETE FROM draftsman.{table}")
    await run(
        conn,
        "UPDATE draftsman.attachments SET status = 'refused', reason = 'r', ended_at = now()",
    )
    async with refused(CHANGE, "a stored or refused attachment is immutable"):
        await run(conn, "UPDATE draftsman.attachments SET reason = 'other'")


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
