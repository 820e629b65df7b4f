"""Fixtures for tests of plugins: a database, the services over it, people, and jobs.

pytest_plugins = ["draftsman_testing.fixtures"]

The server is the embedded PostgreSQL, or that of the URL in `DRAFTSMAN_TEST_URL`, as a superuser.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from draftsman.database.database import Database
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman.runtime import ENUMS, Runtime, wire
from draftsman.settings import Settings, settings_model
from draftsman_testing.factories import Factory
from draftsman_testing.outbox import FAST
from draftsman_testing.people import GROUPS, PEOPLE, People


@pytest.fixture
def database_url(draftsman_database_url: str) -> str:
    """Provide the URL of a migrated database that only this test uses."""
    return draftsman_database_url


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
