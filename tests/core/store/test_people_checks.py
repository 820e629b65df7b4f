"""Constraints of the tables of people."""

from __future__ import annotations

from typing import Final

import pytest

from draftsman.store.postgres.database import Connection
from tests.factories import GATE, Factory
from tests.support.statements import CHECK, refused, run

PEOPLE: Final = [
    ("people (name) VALUES ('')", "people_name_check"),
    ("people (name, roles) VALUES ('anna', '{admin}')", "people_roles_check"),
    ("people (name, quiet_hours) VALUES ('anna', '')", "people_quiet_hours_check"),
    ("people (name, timezone) VALUES ('anna', '')", "people_timezone_check"),
    (
        "person_identities (channel, external_id, person) VALUES ('tui', 'a', 'carol')",
        "person_identities_channel_check",
    ),
    (
        "person_identities (channel, external_id, person) VALUES ('cli', '', 'carol')",
        "person_identities_external_id_check",
    ),
    ("people_groups (name, member) VALUES ('', 'carol')", "people_groups_name_check"),
    ("approval_policy (single) VALUES (false)", "approval_policy_single_check"),
]
REFUSED: Final = [
    (
        "refused_answers VALUES (%s, 1, 0, 'voter', 'reason')",
        "refused_answers_answers_check",
    )
]
TABLES: Final = (PEOPLE, REFUSED)


@pytest.mark.parametrize(("row", "constraint"), PEOPLE)
async def test_a_row_about_people_is_checked(conn: Connection, row: str, constraint: str) -> None:
    await run(conn, "INSERT INTO draftsman.people (name) VALUES ('carol')")
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, f"INSERT INTO draftsman.{row}")


async def test_a_count_of_refused_answers_is_positive(make: Factory, conn: Connection) -> None:
    work = await make.asked(GATE)
    for row, constraint in REFUSED:
        async with refused(CHECK, f'"{constraint}"'):
            await conn.execute(f"INSERT INTO draftsman.{row}".encode(), (work.number,))
