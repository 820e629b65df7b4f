"""Every kill point with every fault: what `make test` does at some of them, here at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from draftsman.runtime import Runtime
from tests.factories import Factory
from tests.kill import points
from tests.kill.faults import crash, cut, kill
from tests.kill.strikes import at_agents, at_phases, at_queries
from tests.support.clock import Clock
from tests.support.server import Server, make_home

LONG = 3000.0
"""Seconds that one fault may take at all points, on a busy machine."""


@pytest.fixture
def server() -> Iterator[Server]:
    """Give a server of its own, which may be crashed."""
    own = Server(make_home(), None)
    yield own
    own.end()


@pytest.mark.timeout(LONG)
async def test_killed_at_every_query(
    rt: Runtime,
    make: Factory,
    clock: Clock,
    database_url: str,
    empty_url: str,
    tmp_path: Path,
) -> None:
    await at_queries(
        kill, points.sql_points(), rt, make, clock, (database_url, empty_url), tmp_path
    )


@pytest.mark.timeout(LONG)
async def test_cut_off_at_every_query(
    rt: Runtime,
    make: Factory,
    clock: Clock,
    server: Server,
    database_url: str,
    empty_url: str,
    tmp_path: Path,
) -> None:
    strike = cut(server.admin)
    await at_queries(
        strike, points.sql_points(), rt, make, clock, (database_url, empty_url), tmp_path
    )


@pytest.mark.timeout(LONG)
async def test_the_server_crashes_at_every_query(
    rt: Runtime,
    make: Factory,
    clock: Clock,
    server: Server,
    database_url: str,
    empty_url: str,
    tmp_path: Path,
) -> None:
    strike = crash(server)
    await at_queries(
        strike, points.sql_points(), rt, make, clock, (database_url, empty_url), tmp_path
    )


@pytest.mark.timeout(LONG)
async def test_the_server_crashes_at_every_step_of_an_agent(
    rt: Runtime, server: Server, database_url: str, tmp_path: Path
) -> None:
    strike = crash(server)
    await at_phases(strike, points.phase_points(), rt, database_url, tmp_path)


@pytest.mark.timeout(LONG)
async def test_workers_killed_at_every_step_of_an_agent(
    rt: Runtime, database_url: str, tmp_path: Path
) -> None:
    await at_phases(kill, points.phase_points(), rt, database_url, tmp_path)


@pytest.mark.timeout(LONG)
async def test_cut_off_at_every_step_of_an_agent(
    rt: Runtime, server: Server, database_url: str, tmp_path: Path
) -> None:
    await at_phases(cut(server.admin), points.phase_points(), rt, database_url, tmp_path)


@pytest.mark.timeout(LONG)
async def test_agents_killed_at_every_point(rt: Runtime, database_url: str, tmp_path: Path) -> None:
    await at_agents(points.phase_points(), rt, database_url, tmp_path)
