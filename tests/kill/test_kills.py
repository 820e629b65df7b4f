"""Processes killed, and cut off, at queries that they execute: nothing is lost or doubled.

Here at the queries of `kill_points.decisive`; `make soak` does it before, inside and behind each.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.kill import kill_points
from tests.kill.fault_points import (
    KillEnvironment,
    at_an_agents_work,
    at_queries,
    by_point,
    check_agents,
    check_all_reached,
    check_phases,
)
from tests.kill.faults import KillAgent, kill

LONG: Final = 300.0
"""Timeout in seconds: a busy machine takes ten times as long as usual."""
WORKER_KILLS: Final = {
    "agent is told ack before",
    "git source.RepoSource.push push after",
}
"""Points at which an agent's worker is killed in each test run; `make soak` has all points."""

AGENT_KILLS: Final = {f"agent says {message} before" for message in ("ask", "result")}
"""Points at which agents are killed in each test run; `make soak` kills them at each message."""


@pytest.mark.timeout(LONG)
async def test_faults_at_queries(environment: KillEnvironment) -> None:
    await at_queries({fault: kill_points.decisive(fault) for fault in ("kill", "cut")}, environment)


@pytest.mark.timeout(LONG)
async def test_a_killed_worker_and_a_killed_agent_at_steps_of_its_run(
    environment: KillEnvironment,
) -> None:
    at = WORKER_KILLS | AGENT_KILLS
    assert at < kill_points.phase_points()
    agents = KillAgent()
    action = by_point({kill: WORKER_KILLS, agents: AGENT_KILLS})
    campaign = await at_an_agents_work(action, at, environment)
    check_phases(at, campaign)
    check_agents(AGENT_KILLS, campaign, agents)


def test_unreached_point_fails() -> None:
    with pytest.raises(AssertionError, match=r"new\.query before"):
        check_all_reached(kill_points.sql_points() | {"new.query before"}, kill_points.sql_points())
