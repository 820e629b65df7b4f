"""Constraints of the tables of queues."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection
from draftsman_testing.factories import Factory
from tests.support.cases import cases
from tests.support.statements import CHANGE as IMMUTABLE
from tests.support.statements import CHECK, UNIQUE, refused, run

PAUSE: Final = {"queue": "'q'", "type": "'t'", "reason": "'r'", "paused_by": "'anna'"}
CHANGE: Final = {"queue": "'q'", "action": "'pause'", "actor": "'anna'"}
PAUSES: Final = [
    ({"queue": "''"}, "queue_pauses_queue_check"),
    ({"type": "''"}, "queue_pauses_type_check"),
    ({"reason": "''"}, "queue_pauses_reason_check"),
]
CHANGES: Final = [({"action": "'stop'"}, "queue_changes_action_check")]
RESERVATION: Final = {
    "queue": "'q'",
    "job": "%(job)s",
    "actor": "'anna'",
    "seconds": "600",
    "expires_at": "draftsman.now() + interval '1 h'",
}
RESERVATIONS: Final = [
    ({"queue": "''"}, "queue_reservations_queue_check"),
    ({"actor": "''"}, "queue_reservations_actor_check"),
    ({"seconds": "59"}, "queue_reservations_seconds_check"),
    ({"seconds": "86401"}, "queue_reservations_seconds_check"),
    ({"expires_at": "draftsman.now() - interval '1 h'"}, "queue_reservations_check"),
]
UNHANDLED: Final = [
    ({"queue": "''"}, "unhandled_types_queue_check"),
    ({"type": "''"}, "unhandled_types_type_check"),
]
TABLES: Final = (PAUSES, CHANGES, RESERVATIONS, UNHANDLED)


@cases(("wrong", "constraint"), PAUSES)
async def test_a_pause_has_valid_columns(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, _insert("queue_pauses", PAUSE | wrong))


@cases("type", ["'t'", "NULL"])
async def test_a_queue_or_type_is_paused_once(conn: Connection, type: str) -> None:
    await run(conn, _insert("queue_pauses", PAUSE | {"type": type}))
    async with refused(UNIQUE, "queue_pauses_unique"):
        await run(conn, _insert("queue_pauses", PAUSE | {"type": type}))


@cases(("wrong", "constraint"), UNHANDLED)
async def test_an_unhandled_type_has_valid_columns(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, _insert("unhandled_types", {"queue": "'q'", "type": "'t'"} | wrong))


@cases(("wrong", "constraint"), CHANGES)
async def test_a_change_has_valid_columns(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, _insert("queue_changes", CHANGE | wrong))


@cases(("wrong", "constraint"), RESERVATIONS)
async def test_a_reservation_has_valid_columns(
    conn: Connection, make: Factory, wrong: dict[str, str], constraint: str
) -> None:
    job = {"job": await make.queued()}
    async with refused(CHECK, f'"{constraint}"'):
        await conn.execute(_insert("queue_reservations", RESERVATION | wrong), job)


async def test_a_queue_is_reserved_once(conn: Connection, make: Factory) -> None:
    await conn.execute(_insert("queue_reservations", RESERVATION), {"job": await make.queued()})
    async with refused(UNIQUE, "queue_reservations_pkey"):
        await conn.execute(_insert("queue_reservations", RESERVATION), {"job": await make.queued()})


@cases("statement", ["UPDATE {} SET actor = 'ben'", "DELETE FROM {}", "TRUNCATE {}"])
async def test_changes_are_append_only(conn: Connection, statement: str) -> None:
    await run(conn, _insert("queue_changes", CHANGE))
    async with refused(IMMUTABLE, "append-only"):
        await run(conn, statement.format("draftsman.queue_changes"))


def _insert(table: str, columns: dict[str, str]) -> str:
    names = ", ".join(columns)
    values = ", ".join(columns.values())
    return f"INSERT INTO draftsman.{table} ({names}) VALUES ({values})"
