"""Fixtures for tests of plugins: a database, the services over it, people, and jobs.

pytest_plugins = ["draftsman_testing.fixtures"]

The server is the embedded PostgreSQL, or that of the URL in `DRAFTSMAN_TEST_URL`, as a superuser.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, LiteralString
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from draftsman.database import migrate
from draftsman.database.database import Database
from draftsman.database.embedded import EmbeddedServer
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman.runtime import ENUMS, Runtime, wire
from draftsman.settings import Settings, settings_model
from draftsman_testing import TEST_URL
from draftsman_testing.factories import Factory
from draftsman_testing.outbox import FAST
from draftsman_testing.people import GROUPS, PEOPLE, People

IDLE_STOP: Final = 900.0
"""Seconds after which the server of a killed session stops by itself."""
MakeDatabase = Callable[[], str]
"""Creates a database with the schema of draftsman and of the installed plugins; returns its URL."""


@pytest.fixture(scope="session")
def make_database() -> Iterator[MakeDatabase]:
    """Provide databases, which are dropped at the end of the session."""
    with tempfile.TemporaryDirectory(prefix="draftsman-test-") as folder:
        Path(folder).chmod(0o755)
        server = EmbeddedServer(Path(folder), IDLE_STOP)
        url = os.environ.get(TEST_URL) or server.ensure()
        names: list[str] = []

        def make() -> str:
            name = f"test_{uuid4().hex}"
            template = names[0] if names else "template0"
            _execute(url, "CREATE DATABASE {} TEMPLATE {}", name, template)
            names.append(name)
            return urlsplit(url)._replace(path=f"/{name}").geturl()

        with ThreadPoolExecutor(1) as pool:  # its event loop is not that of the tests
            pool.submit(lambda: asyncio.run(migrate.migrate(make()))).result()
        yield make
        for name in names:
            _execute(url, "DROP DATABASE {} WITH (FORCE)", name)
        server.stop()


def _execute(url: str, statement: LiteralString, *names: str) -> None:
    server = urlsplit(url)._replace(path="/postgres").geturl()
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@pytest.fixture
def database_url(make_database: MakeDatabase) -> str:
    """Provide the URL of a migrated database that only this test uses."""
    return make_database()


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """Provide a configuration with that database and the people of the tests."""
    return settings_model().model_validate(
        {
            "database_url": database_url,
            "data_dir": tmp_path / "data",
            "types": {"noop": {}},
            "people": PEOPLE,
            "groups": GROUPS,
            "notifications": FAST,
        }
    )


@pytest.fixture
async def db(settings: Settings, database_url: str) -> AsyncIterator[Database]:
    """Provide that database, open."""
    db = Database(database_url, settings.database, pooled=False, enums=ENUMS)
    await db.open()
    yield db
    await db.close()


@pytest.fixture
async def rt(settings: Settings, db: Database) -> AsyncIterator[Runtime]:
    """Provide the services over that database, as on a server: roles decide on permissions."""
    runtime = wire(settings, db, False)
    yield runtime
    await runtime.schemas.close()


@pytest.fixture
def owner() -> Actor:
    """Provide the owner of an embedded database, with all permissions."""
    return Actor(Source.CLI, "root", "Root", person="root", owner=True)


@pytest.fixture
def people(rt: Runtime) -> People:
    """Provide the people of the tests: `people.anna`."""
    return People(rt.policy)


@pytest.fixture
def make(rt: Runtime, owner: Actor) -> Factory:
    """Provide jobs in any state."""
    return Factory(rt, owner)
