"""Processes killed, and cut off, at queries that they execute: nothing is lost or doubled.

Here at the queries of `kill_points.decisive`; `make soak` does it before, inside and behind each.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.kill import kill_points
from tests.kill.fault_points import KillEnvironment, at_agents, at_phases, at_queries, none_missed

LONG: Final = 300.0
"""Seconds after which it hangs: on a machine that many others use it takes ten times as long."""
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
@pytest.mark.parametrize("fault", ["kill", "cut"])
async def test_faults_at_queries(fault: str, place: KillEnvironment) -> None:
    await at_queries(fault, kill_points.decisive(fault), place)


@pytest.mark.timeout(LONG)
async def test_workers_killed_while_an_agent_works(place: KillEnvironment) -> None:
    await at_phases("kill", SOME, place)


@pytest.mark.timeout(LONG)
async def test_an_agent_killed_at_every_message(place: KillEnvironment) -> None:
    messages = {point for point in kill_points.phase_points() if point.startswith("agent says ")}
    await at_agents(messages, place)


def test_unreached_point_fails() -> None:
    with pytest.raises(AssertionError, match=r"new\.query before"):
        none_missed(kill_points.sql_points() | {"new.query before"}, kill_points.sql_points())
