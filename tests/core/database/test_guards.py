"""Rows that PostgreSQL protects from every role: requests, ends, answers, events."""

from __future__ import annotations

import json

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import TERMINAL, Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, REVIEW, Factory
from draftsman_testing.people import People
from tests.support.cases import cases
from tests.support.raw_jobs import STATE_COLUMNS
from tests.support.statements import CHANGE, CONSISTENCY, refused, rows, run, value

IMMUTABLE = {
    "id": "gen_random_uuid()",
    "type": "'other'",
    "idempotency_key": "'other'",
    "request_digest": "'other'",
    "payload": "'{}'",
    "overrides": "'{}'",
    "ticket_url": "'other'",
    "ticket_title": "'other'",
    "ticket_text": "'other'",
    "invoker_id": "'other'",
    "invoker_display_name": "'other'",
    "mode": "'investigate'",
    "source": "'slack'",
    "source_type": "'ticket'",
    "external_event_id": "'other'",
    "retry_of": "number",
    "chain_length": "1",
    "max_attempts": "9",
    "max_retries": "9",
    "created_at": "now()",
    "requested_skills": "'{}'",
    "tags": "'{}'",
    "agent": "'other'",
}


@cases("column", IMMUTABLE)
async def test_the_request_of_a_job_is_immutable(
    make: Factory, conn: Connection, column: str
) -> None:
    number = await make.queued()
    table = "draftsman.job_states" if column in STATE_COLUMNS else "draftsman.job_requests"
    async with refused(CHANGE, "the request of a job is immutable"):
        await run(
            conn,
            f"UPDATE {table} SET {column} = {IMMUTABLE[column]} WHERE number = %s",
            (number,),
        )


@pytest.mark.parametrize("column", ["position = 1", "priority = 7", "queue = 'other'"])
async def test_a_waiting_job_can_be_moved(make: Factory, conn: Connection, column: str) -> None:
    number = await make.queued()
    assert await run(conn, f"UPDATE draftsman.job_states SET {column} WHERE number = {number}") == 1


@pytest.mark.parametrize("status", sorted(TERMINAL))
async def test_a_finished_job_is_immutable(make: Factory, conn: Connection, status: Status) -> None:
    number = await make.job_in(status)
    for change in ("result = '{}'", "position = 1", "finished_at = now()", "last_error = 'other'"):
        async with refused(CHANGE, "a finished job is immutable"):
            await run(conn, f"UPDATE draftsman.job_states SET {change} WHERE number = {number}")


async def test_repository_of_a_finished_job_is_immutable(make: Factory, conn: Connection) -> None:
    statement = "UPDATE draftsman.job_requests SET repo_name = 'pay' WHERE number = %s"
    assert await run(conn, statement, ((await make.running()).number,)) == 1
    async with refused(CHANGE, "a finished job is immutable"):
        await run(conn, statement, (await make.completed(),))


async def test_the_agent_of_a_running_job_is_set_once(make: Factory, conn: Connection) -> None:
    statement = "UPDATE draftsman.job_requests SET agent = %s WHERE number = %s"
    number = (await make.running()).number
    assert await run(conn, statement, ("coder", number)) == 1
    for agent, job in (("tidy", number), (None, number), ("coder", await make.completed())):
        async with refused(CHANGE, "the request of a job is immutable"):
            await run(conn, statement, (agent, job))


async def test_a_job_completes_only_with_the_result_of_its_run(
    make: Factory, conn: Connection
) -> None:
    work = await make.running()
    async with refused(CONSISTENCY, "the result of a job is that of its completed run"):
        await run(
            conn,
            "WITH r AS (UPDATE draftsman.job_runs SET status = 'completed', finished_at = now())"
            " UPDATE draftsman.job_states SET status = 'completed', finished_at = now(),"
            " result = '{}', result_token = %s, lease_token = NULL, worker_id = NULL,"
            " version = version + 1",
            (work.token - 1,),
        )


async def test_a_finished_run_is_immutable(make: Factory, conn: Connection) -> None:
    await make.completed()
    async with refused(CHANGE, "a finished run is immutable"):
        await conn.execute("UPDATE draftsman.job_runs SET usage = '{}'")


async def test_an_open_run_can_change(make: Factory, conn: Connection) -> None:
    await make.running()
    assert await run(conn, "UPDATE draftsman.job_runs SET usage = '{}'") == 1


@pytest.mark.parametrize(
    "change", ["resolution = '{}'", "status = 'open', resolution = NULL", "expires_at = now()"]
)
async def test_a_resolved_question_stays_resolved(
    make: Factory, conn: Connection, change: str
) -> None:
    work = await make.asked()
    assert (await make.answer(work.number, "red")).resolved
    async with refused(CHANGE, "a closed question is immutable"):
        await run(conn, f"UPDATE draftsman.job_questions SET {change}")


@pytest.mark.parametrize("status", ["canceled", "superseded"])
async def test_only_an_answered_or_expired_question_can_be_superseded(
    make: Factory, conn: Connection, status: str
) -> None:
    await make.asked()
    close = "UPDATE draftsman.job_questions SET status = %s, resolution = '{}'"
    await conn.execute(close, (status,))
    async with refused(CHANGE):
        await conn.execute(close, ("superseded",))


async def test_an_answer_is_immutable(make: Factory, conn: Connection) -> None:
    work = await make.asked()
    await make.answer(work.number, "red")
    async with refused(CHANGE, "answers are immutable"):
        await conn.execute("UPDATE draftsman.job_answers SET payload = '{}'")


@pytest.mark.parametrize(
    "table",
    ["job_requests", "job_states", "job_runs", "job_questions", "job_answers", "job_events"],
)
async def test_history_cannot_be_deleted(make: Factory, conn: Connection, table: str) -> None:
    work = await make.asked()
    await make.answer(work.number, "red")
    async with refused(CHANGE, f"{table}"):
        await run(conn, f"DELETE FROM draftsman.{table}")


@pytest.mark.parametrize(
    "table",
    ["job_requests", "job_states", "job_runs", "job_questions", "job_answers", "job_events"],
)
async def test_history_cannot_be_truncated(make: Factory, conn: Connection, table: str) -> None:
    work = await make.asked()
    await make.answer(work.number, "red")
    async with refused(CHANGE, f"{table}: truncate is not allowed"):
        await run(conn, f"TRUNCATE draftsman.{table} CASCADE")


async def _partition(conn: Connection) -> str:
    """Return the partition of the current month."""
    query = (
        "SELECT DISTINCT 'draftsman.' || c.relname FROM draftsman.job_events e"
        " JOIN pg_class c ON c.oid = e.tableoid"
    )
    return str(await value(conn, query))


@pytest.mark.parametrize("statement", ["UPDATE {} SET actor = 'other'", "DELETE FROM {}"])
async def test_events_are_append_only(make: Factory, conn: Connection, statement: str) -> None:
    await make.queued()
    partition = await _partition(conn)
    assert partition != "draftsman.job_events_default"
    for table in ("draftsman.job_events", partition):
        async with refused(CHANGE, "events are append-only"):
            await run(conn, statement.format(table))


async def test_no_partition_of_events_can_be_truncated(conn: Connection) -> None:
    tables = await rows(
        conn,
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
        " WHERE i.inhparent = 'draftsman.job_events'::regclass",
    )
    assert len(tables) > 3
    for (table,) in tables:
        async with refused(CHANGE, "events are append-only"):
            await run(conn, f"TRUNCATE draftsman.{table}")


@pytest.mark.machine_clock("events have the time of the server")
async def test_a_new_partition_is_guarded_like_the_others(conn: Connection) -> None:
    before = await value(conn, "SELECT draftsman.make_event_partitions(3)")
    assert (before, await value(conn, "SELECT draftsman.make_event_partitions(4)")) == (0, 1)
    await test_no_partition_of_events_can_be_truncated(conn)


async def test_a_job_has_at_most_one_open_run_and_one_open_question_of_a_key(
    make: Factory, conn: Connection
) -> None:
    running = await make.running()
    work = await make.asked()
    async with refused(CONSISTENCY, "run 2 is not the newest run of a running job"):
        await run(conn, _COPY_RUN, {"job": running.number})
    async with refused("23505", "job_questions_open"):
        await run(conn, _COPY_QUESTION, {"job": work.number})


async def test_a_run_is_opened_under_the_lease_of_a_running_job_and_no_other(
    make: Factory, conn: Connection
) -> None:
    running = await make.running()
    queued = await make.queued()
    for job, token in ((queued, 1), (10**9, 1), (running.number, running.token + 1)):
        async with refused(CONSISTENCY, "is not the newest run of a running job"):
            await run(conn, _OPEN_RUN, {"job": job, "token": token})
    async with refused(CONSISTENCY, "is not the newest run of a running job"):
        await run(conn, _ENDED_RUN, {"job": queued})
    claimed = await make.claimed()
    async with refused(CONSISTENCY, "is not the newest run of a running job"):
        await run(conn, _START, {"job": claimed.number, "other": 1})
    assert await run(conn, _START, {"job": claimed.number, "other": 0}) == 1


_OPEN_RUN = """
INSERT INTO draftsman.job_runs (job, ordinal, worker_id, lease_token)
VALUES (%(job)s, 7, gen_random_uuid(), %(token)s)"""
_ENDED_RUN = """
INSERT INTO draftsman.job_runs (job, ordinal, worker_id, lease_token, status, finished_at)
VALUES (%(job)s, 1, gen_random_uuid(), 99, 'failed', now())"""
_START = """
WITH moved AS (
UPDATE draftsman.job_states
   SET status = 'running', claimed_from = NULL, version = version + 1, run_count = run_count + 1
 WHERE number = %(job)s
RETURNING number, run_count, worker_id, lease_token)
INSERT INTO draftsman.job_runs (job, ordinal, worker_id, lease_token)
SELECT number, run_count, worker_id, lease_token + %(other)s FROM moved"""
_COPY_RUN = """
INSERT INTO draftsman.job_runs (job, ordinal, worker_id, lease_token)
SELECT job, 2, worker_id, lease_token FROM draftsman.job_runs WHERE job = %(job)s"""
_COPY_QUESTION = """
INSERT INTO draftsman.job_questions (job, ordinal, run, key, kind, text, freeform_allowed, digest)
SELECT job, 2, run, key, kind, text, true, digest FROM draftsman.job_questions
 WHERE job = %(job)s"""


async def test_one_answer_of_an_input_and_one_vote_a_voter_can_be_accepted(
    make: Factory, conn: Connection, rt: Runtime
) -> None:
    for item in (QUESTION, GATE):
        work = await make.asked(item)
        answer = {"job": work.number, "kind": item.kind, "accepted": True}
        async with conn.transaction(force_rollback=True):
            await run(conn, _ANSWER, answer | {"event": "1"})
            async with refused("23505", "job_answers_"), conn.transaction():
                await run(conn, _ANSWER, answer | {"event": "2"})
            assert await run(conn, _ANSWER, answer | {"event": "2", "accepted": False}) == 1
            async with refused("23505", "job_answers_event"), conn.transaction():
                await run(conn, _ANSWER, answer | {"event": "2", "accepted": False})


async def test_an_accepted_answer_is_committed_with_its_effect(
    make: Factory, conn: Connection
) -> None:
    """The approval has a quorum of two, so that its first vote has no effect."""
    for item, payload, closes in (
        (QUESTION, {"value": "red"}, True),
        (GATE, {"decision": "deny"}, True),
        (GATE, {"decision": "approve"}, True),
        (REVIEW, {"decision": "request_changes", "reason": "no"}, True),
        (GATE.model_copy(update={"quorum": 2}), {"decision": "approve"}, False),
    ):
        work = await make.asked(item)
        answer = {"job": work.number, "kind": item.kind, "accepted": True, "event": "1"}
        statement = _ANSWER.replace("'{}'", f"'{json.dumps(payload)}'")
        if closes:
            async with refused(CONSISTENCY, f"D-{work.number}/1: an accepted answer closes"):
                await run(conn, statement, answer)
        else:
            assert await run(conn, statement, answer) == 1


_ANSWER = """
INSERT INTO draftsman.job_answers (job, question, kind, source, source_event_id, responder_id,
                                   voter, payload, accepted, reason)
VALUES (%(job)s, 1, %(kind)s, 'cli', %(event)s, 'ben', 'ben', '{}', %(accepted)s, 'why')"""


async def test_only_a_denial_by_a_person_makes_a_job_denied(
    make: Factory, rt: Runtime, conn: Connection, people: People
) -> None:
    denied = (
        "UPDATE draftsman.job_states SET error_class = 'DENIED', last_error = 'denied by carol'"
    )
    end = "status = 'failed', version = version + 1, finished_at = now()"
    failed = await make.failed()
    work = await make.asked(GATE)
    for change in (f"WHERE number = {failed}", f", {end} WHERE number = {work.number}"):
        async with refused(CONSISTENCY, "error class DENIED requires"):
            await run(conn, f"{denied} {change}")
    await make.decide(work.number, False, people.carol)
    assert (await rt.read_model.job(work.number)).error_class == "DENIED"
