"""The rules of states hold for every writer, also where no service is in the way."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest
from psycopg.errors import CheckViolation

from draftsman.database.database import Connection
from draftsman_testing.factories import Factory
from tests.support.statements import CHECK, refused, run

EMPTY_QUEUE = "UPDATE draftsman.job_states SET queue = '' WHERE number = %s"


async def test_a_wrong_state_among_many_is_refused(make: Factory, conn: Connection) -> None:
    jobs = [await make.queued() for _ in range(3)]
    async with refused(CHECK, '"job_states_run_count_check"'):
        await run(
            conn,
            "UPDATE draftsman.job_states SET run_count = CASE number WHEN %s THEN -1 ELSE 0 END",
            (jobs[1],),
        )


async def test_a_wrong_state_cannot_be_copied_in(make: Factory, conn: Connection) -> None:
    number = await make.queued() + 1
    async with conn.transaction(force_rollback=True):
        await conn.execute("ALTER TABLE draftsman.job_requests DISABLE TRIGGER USER")
        await _copy(
            conn,
            "job_requests (number, id, type, idempotency_key, request_digest, source, invoker_id)",
            f"{number}\t{uuid4()}\tnoop\tkey\t\tcli\tben\n",
        )
        async with refused(CHECK, '"job_states_queue_check"'):
            await _copy(conn, "job_states (number, type, queue)", f"{number}\tnoop\t\n")


async def _copy(conn: Connection, columns: str, row: str) -> None:
    async with conn.cursor().copy(f"COPY draftsman.{columns} FROM STDIN") as copy:
        await copy.write(row)


async def test_the_error_names_the_rule_as_a_constraint(make: Factory, conn: Connection) -> None:
    number = await make.queued()
    with pytest.raises(CheckViolation) as caught:
        await run(conn, EMPTY_QUEUE, (number,))
    about = caught.value.diag
    assert (about.schema_name, about.table_name, about.constraint_name) == (
        "draftsman",
        "job_states",
        "job_states_queue_check",
    )
    assert json.loads(about.message_detail or "")["job"] == number
