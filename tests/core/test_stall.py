"""The watch over workers while a client leaves a transaction open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID, uuid4

import psycopg
import pytest

from draftsman.database.database import Connection
from draftsman_soak.fault_injection import stall
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.support.statements import value

WORKER = uuid4()
LOOKED = """
    SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s AND state = 'idle in transaction')"""


def _able(*workers: set[UUID]) -> Callable[[], Awaitable[set[UUID]]]:
    """Return these workers, call by call."""
    answers = iter(workers)

    async def answer() -> set[UUID]:
        return next(answers)

    return answer


async def test_workers_stall_only_while_none_makes_progress(
    database_url: str, make: Factory, conn: Connection
) -> None:
    async with await psycopg.AsyncConnection.connect(database_url) as client:
        assert await stall(client, 0, _able({WORKER}, {WORKER})) is not None, "no run starts"
        await client.rollback()
        watching = asyncio.create_task(stall(client, 3, _able({WORKER}, {WORKER})))
        own = client.info.backend_pid
        await until(lambda: value(conn, LOOKED, [own]), "the first look")
        await make.running()
        assert await watching is None


async def test_a_transaction_that_is_broken_stalls_nobody(
    database_url: str, conn: Connection
) -> None:
    async with await psycopg.AsyncConnection.connect(database_url) as client:
        await value(conn, "SELECT pg_terminate_backend(%s)", [client.info.backend_pid])
        with pytest.raises(psycopg.OperationalError, match="terminating connection"):
            await stall(client, 0, _able({WORKER}, {WORKER}))


async def test_workers_that_other_faults_keep_from_working_do_not_stall(database_url: str) -> None:
    """One that starts or ends meanwhile could not work all the time."""
    none = set[UUID]()
    for able in ([none, none], [{WORKER}, none], [none, {WORKER}], [{WORKER}, {uuid4()}]):
        async with await psycopg.AsyncConnection.connect(database_url) as client:
            assert await stall(client, 0, _able(*able)) is None
