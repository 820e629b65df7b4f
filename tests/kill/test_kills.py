"""Processes killed, and cut off, at every query that they execute: nothing is lost or doubled.

Here once at each query, where it decides; `make soak` does it before, inside and behind each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from draftsman.runtime import Runtime
from tests.factories import Factory
from tests.kill import points
from tests.kill.faults import cut, kill
from tests.kill.strikes import at_agents, at_phases, at_queries, none_missed
from tests.support.clock import Clock
from tests.support.server import Server

LONG: Final = 400.0
"""Seconds on a machine that is busy with other things; alone it is a tenth."""
SOME: Final = {
    "agent process start after",
    "agent says checkpoint before",
    "git source.Source.push push during",
    "git source.Source.push push after",
    "git workspace.Workspace._clone read-tree before",
    "git workspace.Workspace._unpack update-ref after",
}
"""Where workers are killed under an agent in each test run; `make soak` kills at all points."""


@pytest.mark.timeout(LONG)
async def test_killed_at_every_query(
    rt: Runtime,
    make: Factory,
    clock: Clock,
    database_url: str,
    empty_url: str,
    tmp_path: Path,
) -> None:
    await at_queries(kill, points.decisive(), rt, make, clock, (database_url, empty_url), tmp_path)


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
        strike, points.decisive(), rt, make, clock, (database_url, empty_url), tmp_path
    )


@pytest.mark.timeout(LONG)
async def test_workers_killed_while_an_agent_works(
    rt: Runtime, database_url: str, tmp_path: Path
) -> None:
    await at_phases(kill, SOME, rt, database_url, tmp_path)


@pytest.mark.timeout(LONG)
async def test_an_agent_killed_at_every_message(
    rt: Runtime, database_url: str, tmp_path: Path
) -> None:
    said = {point for point in points.phase_points() if point.startswith("agent says ")}
    await at_agents(said, rt, database_url, tmp_path)


def test_a_point_that_nobody_came_to_fails() -> None:
    with pytest.raises(AssertionError, match=r"new\.query before"):
        none_missed(points.sql_points() | {"new.query before"}, points.sql_points())
