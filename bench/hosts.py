"""Servers of each supported major version with the settings that their packages ship."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from bench.resource_usage import server_cpu
from bench.schedule import Host
from bench.server import BenchServer, session
from tests.servers.clusters import cluster
from tests.servers.installations import MAJORS, installation
from tests.servers.packages import Unavailable


def name(major: int) -> str:
    """Return the name of draftsman's figures on a server with default settings."""
    return f"on PostgreSQL {major}"


NAMES = [name(major) for major in MAJORS]


@asynccontextmanager
async def hosts(majors: Sequence[int], missing: dict[str, str]) -> AsyncIterator[list[Host]]:
    """Start the servers; yield those that started, and record why the others did not.

    Their data is in the same folder as that of the bench's own server.
    """
    folder = Path(tempfile.gettempdir())
    started = list[Host]()
    async with AsyncExitStack() as stack:
        for major in majors:
            try:
                url = stack.enter_context(cluster(installation(major), folder))
            except Unavailable as error:
                missing[name(major)] = str(error)
                continue
            admin = await stack.enter_async_context(session(url))
            place = BenchServer(url, admin)
            stack.push_async_callback(place.leave)
            started.append(Host(name(major), place, server_cpu(admin.conn)))
        yield started
