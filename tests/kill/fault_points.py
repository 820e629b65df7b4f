"""Faults at many points, and the proof that each point was reached."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from draftsman.agent_runs.protocol.codec import TYPES
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import PEOPLE
from tests.kill import kill_points
from tests.kill.agent_work import drive_agent
from tests.kill.campaign import Campaign, FaultAction, configuration
from tests.kill.faults import FAULTS, KillAgent
from tests.kill.follow_ups import TABLE, follow_up_to_the_merge
from tests.kill.probe import SETTLING
from tests.kill.processes import zygote
from tests.kill.pull_requests import open_pull_requests, serving_forge
from tests.kill.scenarios import (
    ask_people,
    cancel_all,
    drain,
    drain_limited,
    live,
    prune,
    tell_people,
)
from tests.kill.statements import ASKED
from tests.support.clock import Clock
from tests.support.server import Server

MAX_POINTS: Final = 60
"""Number of faults in a job: it may lose 100 workers."""
AGAIN: Final = ("2", "3")
"""A process that stops at a point, or dies there, may miss another; so the work is repeated, with
stops only at the points not reached yet."""
BRANCH_WORK: Final = "git open_branches.branch_work"
"""Points of work on the branch of a pull request: those of `at_follow_ups`."""
ELSEWHERE: Final = (
    BRANCH_WORK,
    "agent process ends_within",
    "files process.AgentProcess.__aexit__ remove",
    "files process.AgentProcess._kill_guard kill",
    "git git.git_version version",
    "git git.init init",
    "git open_branches.with_earlier_work",
    "git uncommitted_base.",
    "git uncommitted.",
    "git workspace.Workspace.undo_changes",
    "files codec.parse parse_line",
    "files gateway.",
    "files http_transport.",
    "files lfs_transfer._Server.",
    "files uncommitted_base.",
)
"""Points of an agent that cannot be frozen and of a guard that is stopped (test_guard.py), of
containers (soak_container.py), of repositories behind a URL (test_remote.py, test_lfs.py), of large
messages, gateways and MCP, which write no files, of uncommitted changes, whose base is no tag, of
tidy and of commits that people push."""
UNRESPONSIVE: Final = {"agent process terminate before", "agent process terminate after"}
"""The fault for an agent that does not park: a killed agent has no time for it."""


PLACES: Final = 2
"""Jobs of the type with a limit that run at a time."""
SETTLING_POINTS: Final = {f"{SETTLING} {moment}" for moment in ("before", "after", "committed")}
REST: Final = ("read_model.", "migrations.", "schema.", "archives.", "people.")
"""Points before the first claim of a worker, and of people's processes."""


FOLLOWING: Final = "forges.add "
"""Points of a query that needs a pull request: those of `at_follow_ups`."""
IN_WORKERS: Final = {
    f"forges.{name}"
    for name in (
        *("due", "lock", "new_events", "members", "send", "add", "event", "end", "reopen_pull"),
        "of_job",
    )
}
"""Queries of follow-ups that workers run in this story."""


@dataclass(frozen=True)
class KillEnvironment:
    """The environment of a fault: a database, an empty database, their server, and a folder."""

    rt: Runtime
    server: Server
    make: Factory
    clock: Clock
    url: str
    empty_url: str
    folder: Path

    def inject(self, fault: str) -> FaultAction:
        """Return an action that injects the fault."""
        return FAULTS[fault](self.server)


@pytest.fixture
def environment(
    rt: Runtime,
    server: Server,
    make: Factory,
    clock: Clock,
    database_url: str,
    empty_url: str,
    tmp_path: Path,
) -> KillEnvironment:
    """Give the environment of this test's faults."""
    return KillEnvironment(rt, server, make, clock, database_url, empty_url, tmp_path)


async def execute_others(campaign: Campaign, make: Factory, queries: set[str]) -> None:
    """Inject faults at queries that no other scenario reaches; the data stays consistent."""
    rt = campaign.rt
    asked = await make.asked(notify=("log",))
    await campaign.ask("statements", **{ASKED: asked.number}, **dict.fromkeys(queries, 0))
    assert await rt.acknowledgments.delays(asked.number, 1)
    invariants = await rt.read_model.invariants()
    assert {name: rows for name, rows in invariants.items() if rows} == {}


async def at_queries(fault: str, environment: KillEnvironment) -> None:
    """Inject a fault at every point of queries; fail for a query without a reached point."""
    at = {point for point in kill_points.sql_points() if not point.startswith(FOLLOWING)}
    async with zygote(environment.folder) as forks:
        usual = configuration(environment.url, environment.folder)
        campaign = Campaign(environment.rt, forks, usual, set(at), environment.inject(fault))
        await _work(campaign, environment.folder / "1")
        campaign.pending -= kill_points.reads()
        await prune(campaign, environment.clock)
        await ask_people(campaign, environment.make)
        await tell_people(campaign)
        campaign.settings = configuration(environment.empty_url, environment.folder)
        await campaign.ask("migrating")
        campaign.settings = usual
        campaign.pending = at - campaign.reached
        others = {point.split()[0] for point in campaign.pending}
        await execute_others(campaign, environment.make, others)
        for round_points in AGAIN:
            campaign.pending = at - campaign.reached
            if campaign.pending:
                await cancel_all(environment.rt)
                await _work(campaign, environment.folder / round_points)
    check_all_reached(at, campaign.reached)
    assert at - set(campaign.faulted) <= kill_points.reads()


async def _work(campaign: Campaign, folder: Path) -> None:
    folder.mkdir()
    await live(campaign, folder)
    await drain(campaign)


async def at_limits(fault: str, environment: KillEnvironment) -> None:
    """Inject a fault at every point that workers of jobs with a limit reach, in several rounds.

    The places are counted again after each fault.
    """
    async with zygote(environment.folder) as forks:
        limits = {"type": {"kill:limited": {"running": PLACES}}}
        usual = configuration(environment.url, environment.folder, limits=limits)
        at = {point for point in kill_points.sql_points() if not point.startswith(REST)}
        at |= SETTLING_POINTS
        campaign = Campaign(environment.rt, forks, usual, set(), environment.inject(fault))
        for pending in (at, SETTLING_POINTS, SETTLING_POINTS):
            campaign.pending = set(pending)
            await drain_limited(campaign, limits)
    assert {point: campaign.faulted.count(point) for point in SETTLING_POINTS} == dict.fromkeys(
        SETTLING_POINTS, 3
    )


async def at_an_agents_work(
    action: FaultAction,
    at: set[str],
    environment: KillEnvironment,
    missed: Callable[[], set[str]] = set,
) -> Campaign:
    """Inject faults at these points of an agent's run; return the reached and faulted points.

    `missed` returns the points without a fault after all rounds, at which it is injected again.
    """
    async with zygote(environment.folder) as forks:
        usual = configuration(environment.url, environment.folder)
        campaign = Campaign(environment.rt, forks, usual, set(), action)
        starts = range(0, len(at), MAX_POINTS)
        rounds = [set(sorted(at)[start : start + MAX_POINTS]) for start in starts]
        for number in range(len(rounds) + len(AGAIN)):
            campaign.pending = rounds[number] if number < len(rounds) else missed()
            if not campaign.pending:
                break
            folder = environment.folder / str(number)
            folder.mkdir()
            await drive_agent(campaign, folder)
    return campaign


async def at_a_pull_request(fault: str, environment: KillEnvironment) -> None:
    """Inject a fault at every point from the push to the record of the pull request."""
    at = kill_points.forge_points()
    async with serving_forge(environment.folder) as forge, zygote(environment.folder) as forks:
        usual = configuration(environment.url, environment.folder, **forge.settings)
        campaign = Campaign(environment.rt, forks, usual, set(at), environment.inject(fault))
        await open_pull_requests(campaign, forge)
    # the job publishes a single commit, which is green, and its request names no branch
    names = ("update", "set_draft", "has_branch")
    missed = {f"forge {name} {moment}" for name in names for moment in ("before", "after")}
    check_all_reached(at - missed, set(campaign.faulted))


async def at_follow_ups(fault: str, environment: KillEnvironment) -> None:
    """Inject a fault at every point of follow-ups in workers, from the event to the push."""
    at = {point for point in kill_points.sql_points() if point.startswith("follow_ups.")}
    at |= {f"git source.RepoSource.push push {moment}" for moment in ("before", "after")}
    at |= {f"forge update {moment}" for moment in ("before", "after")}
    at |= {point for point in kill_points.phase_points() if point.startswith(BRANCH_WORK)}
    ben = {"login": "ben", "roles": ["responder"], "forge": "acme:ben"}
    async with serving_forge(environment.folder) as forge, zygote(environment.folder) as forks:
        forge.settings["forges"]["acme"] |= TABLE
        more = forge.settings | {"people": PEOPLE | {"ben": ben}}
        usual = configuration(environment.url, environment.folder) | more
        campaign = Campaign(environment.rt, forks, usual, set(at), environment.inject(fault))
        await follow_up_to_the_merge(campaign, forge)
    reached = {point for point in at if point.split()[0] in IN_WORKERS or "follow" not in point}
    check_all_reached(reached, set(campaign.faulted))


async def at_phases(fault: str, at: set[str], environment: KillEnvironment) -> None:
    """Inject faults at these points of an agent's run; fail for a phase without a reached point."""
    check_phases(at, await at_an_agents_work(environment.inject(fault), at, environment))


async def at_agents(at: set[str], environment: KillEnvironment) -> None:
    """Kill the agent at these points, and at least once at each kind of message.

    A message of an agent that was killed just before arrives when it no longer runs.
    """
    action = KillAgent()
    messages = {point for point in at if re.fullmatch("agent says .* before", point)}
    assert messages >= {f"agent says {name} before" for name in TYPES}
    campaign = await at_an_agents_work(action, at, environment, lambda: messages - action.hit)
    check_all_reached(reachable(at) - UNRESPONSIVE, set(campaign.faulted))
    check_all_reached(messages, action.hit)


def check_phases(at: set[str], campaign: Campaign) -> None:
    """Fail for a phase of an agent's run without a reached point, and for a point without fault."""
    check_all_reached(reachable(kill_points.phase_points()), campaign.reached)
    check_all_reached(reachable(at), set(campaign.faulted))


def reachable(at: set[str]) -> set[str]:
    """Return the points that an agent's run on a local repository reaches."""
    return {point for point in at if not point.startswith(ELSEWHERE)}


def check_all_reached(known: set[str], reached: set[str]) -> None:
    """Fail for a point of the code that no test reached."""
    missed = sorted(known - reached)
    assert missed == [], f"unreached points; extend the scenarios of tests/kill: {missed}"
