"""Constraints of the tables of people."""

from __future__ import annotations

from typing import Final

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Refused
from draftsman.people.directory import Directory, DirectoryEntry
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from tests.support.statements import CHECK, FOREIGN_KEY, refused, run

PEOPLE: Final = [
    ("people (name) VALUES ('')", "people_name_check"),
    ("people (name, roles) VALUES ('anna', '{admin}')", "people_roles_check"),
    ("people (name, quiet_hours) VALUES ('anna', '')", "people_quiet_hours_check"),
    ("people (name, timezone) VALUES ('anna', '')", "people_timezone_check"),
    ("channels (name) VALUES ('Fax')", "channel_check"),
    ("channels (name, package) VALUES ('fax', '')", "channels_package_check"),
    ("channels (name, accounts) VALUES ('fax', 'number')", "channels_accounts_check"),
    ("channels (name, person_target) VALUES ('fax', '.')", "channels_person_target"),
    (
        "person_identities (channel, external_id, person) VALUES ('cli', '', 'carol')",
        "person_identities_external_id_check",
    ),
    (
        "person_identities (channel, external_id, person, place) VALUES ('cli', 'x', 'carol', 0)",
        "person_identities_place_check",
    ),
    ("people_groups (name, member) VALUES ('', 'carol')", "people_groups_name_check"),
    ("approval_policy (single) VALUES (false)", "approval_policy_single_check"),
    (
        "bound_accounts (channel, external_id, account_id) VALUES ('forge', '', '1')",
        "bound_accounts_external_id_check",
    ),
    (
        "bound_accounts (channel, external_id, account_id) VALUES ('forge', 'github:anna', '')",
        "bound_accounts_account_id_check",
    ),
]
_LINK: Final = "sign_in_links (person, digest, expires_at) VALUES"
_SESSION: Final = "browser_sessions (person, method, digest, user_agent, expires_at) VALUES"
_DIGEST: Final = "0" * 64
WEB: Final = [
    (f"{_LINK} ('', '{_DIGEST}', 'infinity')", "sign_in_links_person_check"),
    (f"{_LINK} ('anna', '{_DIGEST[1:]}', 'infinity')", "sign_in_links_digest_check"),
    (f"{_LINK} ('anna', '{_DIGEST}', '-infinity')", "sign_in_links_expires"),
    (f"{_SESSION} ('', 'link', '{_DIGEST}', '', 'infinity')", "browser_sessions_person_check"),
    (f"{_SESSION} ('anna', 'x', '{_DIGEST}', '', 'infinity')", "browser_sessions_method_check"),
    (f"{_SESSION} ('anna', 'link', 'X', '', 'infinity')", "browser_sessions_digest_check"),
    (
        f"{_SESSION} ('anna', 'link', '{_DIGEST}', '{'x' * 301}', 'infinity')",
        "browser_sessions_user_agent_check",
    ),
    (f"{_SESSION} ('anna', 'link', '{_DIGEST}', '', '-infinity')", "browser_sessions_expires"),
]
REFUSED: Final = [
    (
        "refused_answers VALUES (%s, 1, 0, 'voter', 'reason')",
        "refused_answers_answers_check",
    )
]
TABLES: Final = (PEOPLE, WEB, REFUSED)


@pytest.mark.parametrize(("row", "constraint"), [*PEOPLE, *WEB])
async def test_a_row_about_people_is_checked(conn: Connection, row: str, constraint: str) -> None:
    await run(conn, "INSERT INTO draftsman.people (name) VALUES ('carol')")
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, f"INSERT INTO draftsman.{row}")


async def test_an_identity_is_of_a_declared_channel(conn: Connection) -> None:
    await run(conn, "INSERT INTO draftsman.people (name) VALUES ('carol')")
    async with refused(FOREIGN_KEY, '"person_identities_channel_fkey"'):
        await run(conn, "INSERT INTO draftsman.person_identities VALUES ('fax', '1', 'carol')")


async def test_people_have_accounts_in_declared_channels_only(rt: Runtime) -> None:
    fax = Directory({"carol": DirectoryEntry(ids={"fax": "1"})})
    with pytest.raises(Refused, match="carol has an account in fax, which no package"):
        await rt.people.save(fax)


async def test_a_count_of_refused_answers_is_positive(make: Factory, conn: Connection) -> None:
    work = await make.asked(GATE)
    for row, constraint in REFUSED:
        async with refused(CHECK, f'"{constraint}"'):
            await conn.execute(f"INSERT INTO draftsman.{row}".encode(), (work.number,))
