"""Constraints of the table of pagers."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection
from tests.core.database.test_group_checks import insert
from tests.support.cases import cases
from tests.support.statements import CHECK, refused, run

EVENT: Final = {
    "pager": "'ops'", "id": "'e'", "job": "1", "question": "1", "kind": "'resolved'",
    "occurred_at": "now()",
}  # fmt: skip
EVENTS: Final = [
    ({"pager": "''"}, "pager_events_pager_check"),
    ({"id": "''"}, "pager_events_id_check"),
    ({"kind": "'lost'"}, "pager_events_kind_check"),
]
TABLES: Final = (EVENTS,)


@cases(("wrong", "constraint"), EVENTS)
async def test_an_event_has_a_pager_an_id_and_a_known_kind(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert("pager_events", EVENT | wrong))
