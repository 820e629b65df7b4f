"""Login roles of a test server: one for each kind of process, and one for each person.

They are members of the group roles that the migrations make, and belong to one process of pytest.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg
from psycopg import sql

from draftsman.domain.people.directory import Directory, DirectoryEntry
from tests.support.people import GROUPS, PEOPLE
from tests.support.server import Server

PASSWORD: Final = "not a secret: for the roles of tests"
GROUP_OF: Final = {
    "worker": "draftsman_worker",
    "bot": "draftsman_bot",
    "reader": "draftsman_reader",
    "stranger": "draftsman_person",
    **dict.fromkeys(PEOPLE, "draftsman_person"),
}
"""The group of each login role; `stranger` is a person that no mapping names."""


OF_THE_OWNER: Final = {"passfile", "password"}
"""Parameters of the session's URL by which its owner logs in."""
_NUMBERS: Final = count(1)


class Roles:
    """The login roles of this process, by what they are for."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._prefix = f"t{os.getpid()}_{next(_NUMBERS)}"

    def name(self, who: str) -> str:
        """Return the name of the role."""
        return f"{self._prefix}_{who}"

    def url(self, database: str, who: str) -> str:
        """Return the URL with which this role logs in."""
        parts = urlsplit(self._server.url(database))
        host = parts.netloc.rpartition("@")[2]
        login = f"{self.name(who)}:{quote(PASSWORD)}@{host}"
        kept = [pair for pair in parse_qsl(parts.query) if pair[0] not in OF_THE_OWNER]
        return parts._replace(netloc=login, query=urlencode(kept)).geturl()

    def people(self) -> Directory:
        """Return the people of the tests; the login of each is their database role."""
        people = {}
        for name, fields in PEOPLE.items():
            ids = {key: str(fields[key]) for key in ("slack", "trello") if key in fields}
            people[name] = DirectoryEntry(
                frozenset(fields["roles"]), ids | {"cli": self.name(name)}
            )
        return Directory(people, {name: tuple(members) for name, members in GROUPS.items()})

    def settings(self, database: str, who: str, **fields: Any) -> dict[str, Any]:
        """Return a configuration for a process with this role, which names no people."""
        return {"database_url": self.url(database, who), **fields}


@contextmanager
def login_roles(server: Server) -> Iterator[Roles]:
    """Create the login roles, and drop them when the tests of this process are over."""
    roles = Roles(server)
    for who, group in GROUP_OF.items():
        name, login = sql.Identifier(roles.name(who)), sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
        server.admin.execute(login.format(name, PASSWORD))
        server.admin.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(group), name))
    try:
        yield roles
    finally:
        for who in GROUP_OF:
            with contextlib.suppress(psycopg.Error):
                drop = sql.SQL("DROP ROLE {}").format(sql.Identifier(roles.name(who)))
                server.admin.execute(drop)
