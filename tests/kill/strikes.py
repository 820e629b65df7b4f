"""A fault at many points, and the proof that somebody came to each."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from draftsman.handlers.protocol import TYPES
from draftsman.runtime import Runtime
from tests.factories import Factory
from tests.kill import points
from tests.kill.campaign import Campaign, Strike, configuration
from tests.kill.faults import KillAgent
from tests.kill.processes import zygote
from tests.kill.stories import (
    ask_people,
    cancel_all,
    drain,
    drive_agent,
    live,
    prune,
    tell_people,
)
from tests.support.clock import Clock

MOST: Final = 60
"""Points at which one job is struck: it may lose 100 workers."""
AGAIN: Final = ("2", "3")
"""A process that stands still at one point, or dies there, may miss another; so the work is done
again, with stops only at what nobody came to."""
DEAF: Final = {"agent process terminate before", "agent process terminate after"}
"""What is done to an agent that does not park: one that was killed has no time for it."""


async def at_queries(
    strike: Strike,
    at: set[str],
    rt: Runtime,
    make: Factory,
    clock: Clock,
    urls: tuple[str, str],
    folder: Path,
) -> None:
    """Strike at these points of queries; one of any query that nobody came to fails.

    `urls` are of the database of `rt`, and of an empty one.
    """
    url, empty_url = urls
    async with zygote(folder) as forks:
        campaign = Campaign(rt, forks, configuration(url, folder), set(at), strike)
        await _work(campaign, folder / "1")
        campaign.pending -= points.reads()
        await prune(campaign, clock)
        await ask_people(campaign, make)
        await tell_people(campaign)
        campaign.settings = configuration(empty_url, folder)
        await campaign.ask("migrating")
        campaign.settings = configuration(url, folder)
        for place in AGAIN:
            campaign.pending = points.sql_points() - campaign.reached
            if campaign.pending:
                await cancel_all(rt)
                await _work(campaign, folder / place)
    none_missed(points.sql_points(), campaign.reached)
    assert at - set(campaign.struck) <= points.reads()


async def _work(campaign: Campaign, folder: Path) -> None:
    folder.mkdir()
    await live(campaign, folder)
    await drain(campaign)


async def at_an_agents_work(
    strike: Strike, at: set[str], rt: Runtime, url: str, folder: Path
) -> Campaign:
    """Strike at these points of an agent's run; return what was reached and struck."""
    async with zygote(folder) as forks:
        campaign = Campaign(rt, forks, configuration(url, folder), set(), strike)
        for place, start in enumerate(range(0, len(at), MOST)):
            campaign.pending = set(sorted(at)[start : start + MOST])
            (folder / str(place)).mkdir()
            await drive_agent(campaign, folder / str(place))
    return campaign


async def at_phases(strike: Strike, at: set[str], rt: Runtime, url: str, folder: Path) -> None:
    """Strike at these points of an agent's run; one of any phase that nobody came to fails."""
    campaign = await at_an_agents_work(strike, at, rt, url, folder)
    none_missed(points.phase_points(), campaign.reached)
    none_missed(at, set(campaign.struck))


async def at_agents(at: set[str], rt: Runtime, url: str, folder: Path) -> None:
    """Kill the agent at these points, and at each of its messages at least."""
    strike = KillAgent()
    campaign = await at_an_agents_work(strike, at, rt, url, folder)
    none_missed(at - DEAF, set(campaign.struck))
    none_missed({f"agent says {name} before" for name in TYPES}, strike.hit)


def none_missed(known: set[str], reached: set[str]) -> None:
    """Fail for a point of the code that no test came to."""
    missed = sorted(known - reached)
    assert missed == [], f"nobody came to these points, let tests/kill/stories.py: {missed}"
