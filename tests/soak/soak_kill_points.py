"""Processes killed, and cut off, at every point with every fault: nothing is lost or doubled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kill import kill_points
from tests.kill.fault_points import (
    KillEnvironment,
    at_a_pull_request,
    at_agents,
    at_follow_ups,
    at_limits,
    at_phases,
    at_queries,
)
from tests.kill.faults import FAULTS
from tests.support.server import Server, make_home

LONG = 3000.0
"""Maximum seconds of a fault at all points, on a busy machine."""


@pytest.fixture
def server() -> Iterator[Server]:
    """Provide a server of this test, which may crash."""
    own = Server(make_home(), None)
    yield own
    own.end()


@pytest.mark.timeout(LONG)
@pytest.mark.parametrize("fault", FAULTS)
async def test_faults_at_every_query(fault: str, environment: KillEnvironment) -> None:
    await at_queries(fault, environment)


@pytest.mark.timeout(LONG)
@pytest.mark.parametrize("fault", FAULTS)
async def test_faults_while_jobs_wait_for_a_limit(fault: str, environment: KillEnvironment) -> None:
    await at_limits(fault, environment)


@pytest.mark.timeout(LONG)
@pytest.mark.parametrize("fault", FAULTS)
async def test_faults_at_every_step_of_an_agent(fault: str, environment: KillEnvironment) -> None:
    await at_phases(fault, kill_points.phase_points(), environment)


@pytest.mark.timeout(LONG)
@pytest.mark.parametrize("fault", FAULTS)
async def test_faults_between_push_and_pull_request(
    fault: str, environment: KillEnvironment
) -> None:
    await at_a_pull_request(fault, environment)


@pytest.mark.timeout(LONG)
@pytest.mark.parametrize("fault", FAULTS)
async def test_faults_between_the_steps_of_follow_ups(
    fault: str, environment: KillEnvironment
) -> None:
    await at_follow_ups(fault, environment)


@pytest.mark.timeout(LONG)
async def test_agents_killed_at_every_point(environment: KillEnvironment) -> None:
    await at_agents(kill_points.phase_points(), environment)
