"""Processes killed, and cut off, at queries that they execute: nothing is lost or doubled.

Here at the queries of `kill_points.decisive`; `make soak` does it before, inside and behind each.
"""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.kill import kill_points
from tests.kill.fault_points import (
    KillEnvironment,
    at_an_agents_work,
    at_queries,
    by_point,
    check_agents,
    check_phases,
    none_missed,
)
from tests.kill.faults import KillAgent, kill

LONG: Final = 300.0
"""Seconds after which it hangs: on a machine that many others use it takes ten times as long."""
WORKER_KILLS: Final = {
    "agent process start after",
    "agent is told ack before",
    "git source.RepoSource.push push after",
    "git workspace.Workspace._unpack update-ref after",
}
"""Where workers are killed under an agent in each test run; `make soak` kills at all points."""


@pytest.mark.timeout(LONG)
async def test_faults_at_queries(place: KillEnvironment) -> None:
    await at_queries({fault: kill_points.decisive(fault) for fault in ("kill", "cut")}, place)


@pytest.mark.timeout(LONG)
async def test_a_killed_worker_and_an_agent_killed_at_every_message(
    place: KillEnvironment,
) -> None:
    messages = {
        point for point in kill_points.phase_points() if re.match("agent says .* before", point)
    }
    assert kill_points.phase_points() > WORKER_KILLS
    agents = KillAgent()
    strike = by_point({kill: WORKER_KILLS, agents: messages})
    campaign = await at_an_agents_work(strike, (WORKER_KILLS, messages), place)
    check_phases(WORKER_KILLS | messages, campaign)
    check_agents(messages, campaign, agents)


def test_unreached_point_fails() -> None:
    with pytest.raises(AssertionError, match=r"new\.query before"):
        none_missed(kill_points.sql_points() | {"new.query before"}, kill_points.sql_points())
