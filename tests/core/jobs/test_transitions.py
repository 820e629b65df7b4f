"""The life cycles in PostgreSQL and Python agree: as text, and for every pair of statuses."""

from __future__ import annotations

from itertools import product
from typing import Any
from uuid import UUID

import psycopg
import pytest

from draftsman import resources
from draftsman.database.database import Connection
from draftsman.jobs.job import FUSED, INITIAL, LEASED, TERMINAL, TRANSITIONS, Status, steps
from draftsman_testing.factories import Factory
from tests.support.cases import cases
from tests.support.raw_jobs import insert_job
from tests.support.statements import CHANGE, CONSISTENCY, TRANSITION, outcome, refused, run, value

S = Status
JOBS = dict(resources.functions())["functions/jobs"]
SITUATIONS = [*S, "paused", "claimed again"]
"""Every status, and the two whose past matters: scheduled after a run, claimed from `resumed`."""


def test_transitions_in_the_guard_are_rendered_from_the_table() -> None:
    lines = []
    for before in S:
        allowed = ", ".join(f"'{after}'" for (start, after) in TRANSITIONS if start is before)
        twos = [after for (start, after) in FUSED if start is before]
        if allowed:
            fused = "".join(f" WHEN after = '{after}' THEN 2" for after in twos)
            rule = f"CASE WHEN after IN ({allowed}) THEN 1{fused} END"
            lines.append(f"WHEN '{before}' THEN {rule}")
    guard = JOBS.split("FUNCTION draftsman.check_transition(")[1]
    cases = guard.split("CASE before\n")[1].split("            END\n")[0]
    assert " ".join(cases.split()) == " ".join(lines)  # wherever its lines are broken


def test_the_kinds_in_the_migration_are_rendered_from_the_table() -> None:
    lines = []
    for before in S:
        kinds = [(after, kind) for (start, after), kind in TRANSITIONS.items() if start is before]
        if kinds:
            rules = "".join(f"\n            WHEN '{after}' THEN '{kind}'" for after, kind in kinds)
            lines.append(f"        WHEN '{before}' THEN CASE after{rules} END\n")
    text = JOBS.split("FUNCTION draftsman.transition_kind(")[1]
    assert text.split("RETURN CASE before\n")[1].split("    END;\nEND $$;")[0] == "".join(lines)


async def test_the_function_knows_the_kind_of_every_pair(conn: Connection) -> None:
    query = "SELECT draftsman.transition_kind(%(a)s, %(b)s)"
    for before, after in product(S, S):
        result = await value(conn, query, {"a": before, "b": after})
        assert result == TRANSITIONS.get((before, after)), (before, after)


async def test_the_guard_allows_exactly_the_transitions_of_the_table(conn: Connection) -> None:
    """Every call of the guard; other rules may refuse a change of a job as well."""
    await conn.execute(_ASK)
    query = """
        SELECT b, a, growth, origin, runs, keeps,
               pg_temp.allows(b, a, growth, origin, runs, keeps)
          FROM unnest(enum_range(NULL::draftsman.job_status)) b,
               unnest(enum_range(NULL::draftsman.job_status)) a,
               generate_series(0, 3) growth,
               unnest('{queued,resumed}'::draftsman.job_status[]) origin,
               generate_series(0, 1) runs, unnest('{f,t}'::boolean[]) keeps"""
    checked = 0
    async for before, after, growth, origin, ran, keeps, allowed in conn.cursor().stream(query):
        expected = steps(before, after) == growth > 0 and _past_allows(
            before, after, origin, bool(ran)
        )
        if (before, after) == (S.CLAIMED, S.RUNNING):
            expected = expected and keeps
        assert allowed == expected, (before, after, growth, origin, ran, keeps)
        checked += 1
    assert checked == len(S) ** 2 * 4 * 2 * 2 * 2


_ASK = """
CREATE FUNCTION pg_temp.allows(
    before draftsman.job_status, after draftsman.job_status, growth int,
    origin draftsman.job_status, runs int, keeps boolean
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN draftsman.check_transition(1, before, after, 5, 5 + growth, origin, runs, keeps);
EXCEPTION WHEN SQLSTATE 'DM001' THEN
    RETURN false;
END $$"""


@cases("situation", SITUATIONS)
async def test_the_database_allows_exactly_the_transitions_of_the_table(
    make: Factory, conn: Connection, situation: str
) -> None:
    number = await _situation(make, situation)
    before, claimed_from, ran = await _where(conn, number)
    for after, growth in product(S, range(4)):
        if before is after and growth == 0:
            allowed = before not in TERMINAL
        else:
            allowed = steps(before, after) == growth > 0 and _past_allows(
                before, after, claimed_from, ran
            )
        result = await _try(conn, number, before, after, growth)
        refusal = CHANGE if before is after and growth == 0 else TRANSITION
        assert result == ("ok" if allowed else refusal), f"{before} -> {after} by {growth}"


def _past_allows(before: Status, after: Status, claimed_from: Status | None, ran: bool) -> bool:
    """The rules beyond the table: back to the status before the claim, resume if waiting."""
    if before is S.CLAIMED and after in (S.QUEUED, S.RESUMED):
        return after is claimed_from
    if before is S.SCHEDULED and after in (S.QUEUED, S.RESUMED):
        return ran is (after is S.RESUMED)
    return True


async def _situation(make: Factory, situation: str) -> int:
    if situation == "paused":
        return await make.paused()
    if situation == "claimed again":
        return (await make.claimed(await make.resumed())).number
    return await make.job_in(S(situation))


async def _where(conn: Connection, number: int) -> tuple[Status, Status | None, bool]:
    query = "SELECT status, claimed_from, run_count > 0 FROM draftsman.jobs WHERE number = %s"
    (result,) = await (await conn.execute(query, (number,))).fetchall()
    return result[0], result[1], result[2]


async def _try(conn: Connection, number: int, before: Status, after: Status, growth: int) -> str:
    """Write a status with its columns, roll back, and return the outcome."""
    try:
        async with conn.transaction(force_rollback=True):
            await _prepare(conn, number, before, after)
            await run(conn, _UPDATE, _columns(number, before, after, growth))
    except psycopg.Error as error:
        return error.sqlstate or ""
    return "ok"


async def _prepare(conn: Connection, number: int, before: Status, after: Status) -> None:
    """Give the runs and questions the state that the new status requires."""
    if before is after:
        return
    await run(conn, _END_RUN, {"job": number})
    leaves = after is S.RESUMED or (before, after) == (S.WAITING_FOR_APPROVAL, S.WAITING_FOR_INPUT)
    await run(conn, _APPROVE if leaves else _END_QUESTION, {"job": number})
    if after in (S.WAITING_FOR_INPUT, S.WAITING_FOR_APPROVAL):
        kind = "input" if after is S.WAITING_FOR_INPUT else "approval"
        await run(conn, _OPEN_QUESTION, {"job": number, "kind": kind})


def _columns(number: int, before: Status, after: Status, growth: int) -> dict[str, Any]:
    return {
        "job": number,
        "after": after,
        "growth": growth,
        "moved": before is not after,
        "leased": after in LEASED,
        "same_lease": (before, after) in {(b, b) for b in S} | {(S.CLAIMED, S.RUNNING)},
        "claimed_from": before if before in (S.QUEUED, S.RESUMED) else S.QUEUED,
        "over": after in TERMINAL,
        "opens": after is S.RUNNING and before is not after,
    }


_UPDATE = """
WITH moved AS (
UPDATE draftsman.job_states
   SET status = %(after)s, version = version + %(growth)s,
       claimed_from = CASE WHEN %(after)s = 'claimed'
                      THEN CASE WHEN %(moved)s THEN %(claimed_from)s ELSE claimed_from END END,
       worker_id = CASE WHEN %(leased)s THEN gen_random_uuid() END,
       lease_token = CASE WHEN %(leased)s AND %(same_lease)s THEN lease_token
                     WHEN %(leased)s THEN nextval('draftsman.lease_tokens') END,
       run_at = coalesce(run_at, draftsman.now()), last_error = coalesce(last_error, 'it broke'),
       next_retry_at = CASE WHEN %(after)s = 'retrying' THEN draftsman.now() END,
       finished_at = CASE WHEN %(over)s THEN now() END,
       result_token = CASE WHEN %(after)s = 'completed'
                      THEN coalesce(result_token, lease_token, 0) END,
       run_count = run_count + CASE WHEN %(opens)s THEN 1 ELSE 0 END
 WHERE number = %(job)s
RETURNING number, run_count, worker_id, lease_token
)
INSERT INTO draftsman.job_runs (job, ordinal, worker_id, lease_token)
SELECT * FROM moved WHERE %(opens)s"""
_END_RUN = """
UPDATE draftsman.job_runs SET status = 'interrupted', finished_at = draftsman.now()
 WHERE job = %(job)s AND status = 'running'"""
_END_QUESTION = """
UPDATE draftsman.job_questions SET status = 'canceled', resolution = '{}'
 WHERE job = %(job)s AND status = 'open'"""
_APPROVE = """
UPDATE draftsman.job_questions
   SET status = 'answered', answered_at = draftsman.now(), resolution = '{"outcome": "approved"}'
 WHERE job = %(job)s AND status = 'open'"""
_OPEN_QUESTION = """
INSERT INTO draftsman.job_questions (job, ordinal, run, key, kind, text, freeform_allowed, digest)
VALUES (%(job)s, 99, 1, 'key', %(kind)s::draftsman.question_kind, 'text',
        %(kind)s::draftsman.question_kind = 'input', 'digest')"""


async def test_a_lease_changes_with_a_status_only(make: Factory, conn: Connection) -> None:
    work = await make.running()
    steal = "UPDATE draftsman.job_states SET lease_token = lease_token + 1 WHERE number = %s"
    async with refused(TRANSITION):
        await conn.execute(steal, (work.number,))


async def test_a_claimed_job_starts_with_the_lease_of_its_claim(
    make: Factory, conn: Connection
) -> None:
    work = await make.claimed()
    columns = _columns(work.number, S.CLAIMED, S.RUNNING, 1)
    async with conn.transaction(force_rollback=True):
        assert await outcome(conn, _UPDATE, columns) == "ok"
        assert await outcome(conn, _UPDATE, columns | {"same_lease": False}) == TRANSITION


async def test_a_job_that_ran_is_resumed_and_another_is_queued(
    make: Factory, conn: Connection
) -> None:
    allowed = {await make.paused(): S.RESUMED, await make.scheduled(): S.QUEUED}
    for number, right in allowed.items():
        for after in (S.RESUMED, S.QUEUED):
            result = await outcome(conn, _UPDATE, _columns(number, S.SCHEDULED, after, 1))
            assert result == ("ok" if after is right else TRANSITION)


@pytest.mark.parametrize(("before", "after"), [(S.CLAIMED, S.RUNNING), (S.RUNNING, S.RESUMED)])
async def test_a_running_job_has_exactly_one_open_run_and_any_other_none(
    make: Factory, conn: Connection, before: Status, after: Status
) -> None:
    number = await make.job_in(before)
    columns = _columns(number, before, after, 1) | {"opens": False}
    async with refused(CONSISTENCY, f"D-{number}: a running job has exactly one open run"):
        await run(conn, _UPDATE, columns)


@pytest.mark.parametrize("after", [S.WAITING_FOR_INPUT, S.COMPLETED])
async def test_a_waiting_job_has_open_questions_and_any_other_none(
    make: Factory, conn: Connection, after: Status
) -> None:
    number = (await make.running()).number
    await run(conn, _END_RUN, {"job": number})
    if after is S.COMPLETED:
        await run(conn, _OPEN_QUESTION, {"job": number, "kind": "input"})
    async with refused(CONSISTENCY, f"D-{number}: a waiting job has open questions"):
        await run(conn, _UPDATE, _columns(number, S.RUNNING, after, 1))


@cases("status", S)
async def test_a_job_is_inserted_queued_or_scheduled_only(
    make: Factory, conn: Connection, status: Status
) -> None:
    number = await make.job_in(status)
    assert await outcome(conn, _copy(), {"job": number}) == (
        "ok" if status in INITIAL else TRANSITION
    )


@pytest.mark.parametrize(
    "started",
    [
        {"version": "2"},
        {"version": "0"},
        {"run_count": "1"},
        {"attempts": "1"},
        {"retry_count": "1"},
        {"cancel_requested_at": "draftsman.now()", "cancel_requested_by": "'ben'"},
    ],
    ids=lambda started: "-".join(next(iter(started.items()))),
)
async def test_a_job_is_inserted_unstarted(
    make: Factory, conn: Connection, started: dict[str, str]
) -> None:
    number = await make.queued()
    assert await outcome(conn, _copy(**started), {"job": number}) == TRANSITION


async def test_request_and_state_are_inserted_together(make: Factory, conn: Connection) -> None:
    number = await make.queued()
    request = (
        "INSERT INTO draftsman.job_requests (id, type, idempotency_key, request_digest, source,"
        " invoker_id) VALUES (gen_random_uuid(), 'noop', 'alone', '', 'cli', 'a')"
    )
    async with refused(TRANSITION, "has no state"):
        await run(conn, request)
    async with refused(TRANSITION, "D-999: the state has no request"):
        await run(conn, "INSERT INTO draftsman.job_states (number, type) VALUES (999, 'noop')")
    state = "INSERT INTO draftsman.job_states (number, type) SELECT number, 'other' FROM r"
    async with refused(TRANSITION, "the state has type other, not noop"):
        await run(conn, f"WITH r AS ({request} RETURNING number) {state}")
    for table in ("job_requests", "job_states"):
        assert await value(conn, f"SELECT array_agg(number) FROM draftsman.{table}") == [number]


async def test_each_job_of_a_batch_is_checked(conn: Connection) -> None:
    batch = (
        "WITH r AS (INSERT INTO draftsman.job_requests (id, type, idempotency_key, request_digest,"
        " source, invoker_id) SELECT gen_random_uuid(), 'noop', 'key' || g, '', 'cli', 'a'"
        " FROM generate_series(1, 3) g RETURNING number)"
        " INSERT INTO draftsman.job_states (number, type, version) SELECT"
    )
    async with refused(TRANSITION, "has no state"):
        await run(conn, f"{batch} number, 'noop', 1 FROM r ORDER BY number LIMIT 2")
    last = "(SELECT max(number) FROM r)"
    async with refused(TRANSITION, "the state has type other, not noop"):
        kind = f"CASE number WHEN {last} THEN 'other' ELSE 'noop' END"
        await run(conn, f"{batch} number, {kind}, 1 FROM r")
    async with refused(TRANSITION, "a new job must be queued or scheduled"):
        await run(conn, f"{batch} number, 'noop', CASE number WHEN {last} THEN 2 ELSE 1 END FROM r")
    assert await run(conn, f"{batch} number, 'noop', 1 FROM r") == 3


async def test_started_job_is_refused_for_its_state_not_for_its_key(
    make: Factory, conn: Connection
) -> None:
    id = f"'{UUID(int=7)}'"
    copy = _copy(id=id, idempotency_key=f"'auto:' || {id}", version="2")
    async with refused(TRANSITION, "a new job must be queued or scheduled"):
        await run(conn, copy, {"job": await make.queued()})


async def test_a_retry_names_an_existing_job(make: Factory, conn: Connection) -> None:
    number = await make.queued()
    id = f"'{UUID(int=7)}'"
    copy = _copy(id=id, idempotency_key=f"'auto:' || {id}", retry_of="999")
    async with refused(TRANSITION, "there is no job D-999 to retry"):
        await run(conn, copy, {"job": number})


async def test_a_reserved_key_belongs_to_its_job_only(make: Factory, conn: Connection) -> None:
    number = await make.queued()
    id = f"'{UUID(int=7)}'"
    for key in (f"'auto:{UUID(int=8)}'", "'auto:'"):
        copy = _copy(id=id, idempotency_key=key)
        assert await outcome(conn, copy, {"job": number}) == TRANSITION
    for copy in (
        _copy(id=id, idempotency_key=f"'auto:' || {id}"),
        _copy(idempotency_key="'given'"),
    ):
        assert await run(conn, copy, {"job": number}) == 1
        assert await outcome(conn, copy, {"job": number}) == "23505"


def _copy(**changed: str) -> str:
    """Return an INSERT that copies a job with a new identity and these changes."""
    named = {
        "id": "gen_random_uuid()",
        "idempotency_key": "gen_random_uuid()",
        "version": "1",
        "run_count": "0",
        "attempts": "0",
        "retry_count": "0",
        "cancel_requested_at": "NULL",
        "cancel_requested_by": "NULL",
    } | changed
    copied = [
        "type",
        "request_digest",
        "status",
        "claimed_from",
        "source",
        "invoker_id",
        "run_at",
        "next_retry_at",
        "last_error",
        "worker_id",
        "lease_token",
        "finished_at",
    ]
    columns = {name: name for name in copied} | named
    return insert_job(columns, "draftsman.jobs WHERE number = %(job)s")


async def test_an_insert_without_a_status_is_queued(make: Factory, conn: Connection) -> None:
    await make.queued()
    assert await value(conn, "SELECT status FROM draftsman.jobs") is S.QUEUED
