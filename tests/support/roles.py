"""Login roles of a test server: a role for each kind of process, and for each person.

They are members of the group roles of the migrations, and belong to a process of pytest.
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

from draftsman.people.directory import Directory, DirectoryEntry
from draftsman_testing.people import GROUPS, PEOPLE
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
"""Parameters of the URL with which the owner logs in."""
_NUMBERS: Final = count(1)


class Roles:
    """The login roles of this process, by purpose."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._prefix = f"t{os.getpid()}_{next(_NUMBERS)}"

    def name(self, purpose: str) -> str:
        """Return the name of the role."""
        return f"{self._prefix}_{purpose}"

    def url(self, database: str, purpose: str) -> str:
        """Return the URL with which this role logs in."""
        parts = urlsplit(self._server.url(database))
        host = parts.netloc.rpartition("@")[2]
        login = f"{self.name(purpose)}:{quote(PASSWORD)}@{host}"
        parameters = [pair for pair in parse_qsl(parts.query) if pair[0] not in OF_THE_OWNER]
        return parts._replace(netloc=login, query=urlencode(parameters)).geturl()

    def people(self) -> Directory:
        """Return the people of the tests; the login of each is their database role."""
        people = {}
        for name, fields in PEOPLE.items():
            ids = {key: str(fields[key]) for key in ("slack", "trello") if key in fields}
            people[name] = DirectoryEntry(
                frozenset(fields["roles"]), ids | {"cli": self.name(name)}
            )
        return Directory(people, {name: tuple(members) for name, members in GROUPS.items()})

    def settings(self, database: str, purpose: str, **fields: Any) -> dict[str, Any]:
        """Return a configuration without people for a process with this role."""
        return {"database_url": self.url(database, purpose), **fields}


@contextmanager
def login_roles(server: Server) -> Iterator[Roles]:
    """Create the login roles, and drop them after the tests of this process."""
    roles = Roles(server)
    for purpose, group in GROUP_OF.items():
        name = sql.Identifier(roles.name(purpose))
        login = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
        server.admin.execute(login.format(name, PASSWORD))
        server.admin.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(group), name))
    try:
        yield roles
    finally:
        for purpose in GROUP_OF:
            with contextlib.suppress(psycopg.Error):
                drop = sql.SQL("DROP ROLE {}").format(sql.Identifier(roles.name(purpose)))
                server.admin.execute(drop)
