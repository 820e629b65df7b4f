"""`draftsman bots forges` as a process: the lease of its reader ends with it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from draftsman.database.database import Connection
from draftsman_testing.forges.github import FakeGitHub
from draftsman_testing.waits import until
from tests.acceptance.conftest import installations
from tests.acceptance.processes import Installation
from tests.support.statements import rows, value

__all__ = ["installations"]


async def test_the_lease_of_a_killed_reader_is_free_at_once(
    installations: Callable[[str], Installation], conn: Connection, tmp_path: Path
) -> None:
    async with FakeGitHub(tmp_path / "forge") as forge:
        bots = installations("bots")
        bots.configure(
            forges__acme__kind="github",
            forges__acme__url=forge.world.base,
            forges__acme__token__env="FORGE_TOKEN",
            forges__acme__events="poll",
        )
        env = {"FORGE_TOKEN": forge.world.token}
        first = bots.start("bots", "forges", env=env)
        query = (
            "UPDATE draftsman.leases SET expires_at = draftsman.now() + interval '1 hour'"
            " WHERE name = 'forge' RETURNING lock_id"
        )

        async def under_its_lock() -> bool:
            return any(lock is not None for (lock,) in await rows(conn, query))

        await until(under_its_lock, "a lease that is free with the session")
        owner = await value(conn, "SELECT owner FROM draftsman.leases WHERE name = 'forge'")
        first.signal(signal.SIGKILL)
        assert await first.end() == -signal.SIGKILL
        second = bots.start("bots", "forges", env=env)

        async def acquired() -> bool:
            query = "SELECT owner FROM draftsman.leases WHERE name = 'forge'"
            return bool(await value(conn, query) != owner)

        await until(acquired, "the lease of the second process")
        second.signal(signal.SIGTERM)
        assert await second.end() == 0
