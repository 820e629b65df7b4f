"""Sessions with the login roles of workers, bots and people, over the same database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack

import pytest

from draftsman.database.database import Connection, Database
from draftsman.runtime import ENUMS, Runtime, open_runtime
from draftsman.settings import Settings, settings_model
from tests.support.roles import Roles, login_roles
from tests.support.server import Server

As = Callable[[str], Awaitable[Runtime]]


@pytest.fixture(scope="session")
def roles(server: Server) -> Iterator[Roles]:
    """Give the login roles of this process."""
    server.leave(server.create())  # the group roles come with the first migrated database
    with login_roles(server) as roles:
        yield roles


@pytest.fixture
async def known(rt: Runtime, roles: Roles) -> Runtime:
    """Give the owner's services, with the people in the database."""
    await rt.people.save(roles.people())
    return rt


@pytest.fixture
async def as_role(
    known: Runtime, roles: Roles, database: str, settings: Settings
) -> AsyncIterator[As]:
    """Give the services of a process that logs in with a role: `await as_role("carol")`."""
    async with AsyncExitStack() as stack:

        async def opened(user: str) -> Runtime:
            overrides = {"people": {}, "groups": {}, "data_dir": settings.data_dir}
            changed = settings_model().model_validate(roles.settings(database, user, **overrides))
            return await stack.enter_async_context(open_runtime(changed))

        yield opened


@pytest.fixture
async def session(
    known: Runtime, roles: Roles, database: str, settings: Settings
) -> AsyncIterator[Callable[[str], Awaitable[Connection]]]:
    """Give a bare session of a role: `await session("carol")`."""
    async with AsyncExitStack() as stack:

        async def opened(user: str) -> Connection:
            db = Database(roles.url(database, user), settings.database, enums=ENUMS)
            await db.open()
            stack.push_async_callback(db.close)
            conn = await db.dedicated_connection()
            stack.push_async_callback(conn.close)
            return conn

        yield opened
