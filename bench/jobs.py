"""What every figure needs: requests, the services over a database, somebody who asks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from draftsman.domain.actor import Actor
from draftsman.domain.invocation import Invocation
from draftsman.domain.job import Source
from draftsman.runtime import Runtime, open_runtime
from draftsman.services.intake import invocation
from draftsman.settings import Settings

BATCH = 1000
ME = Actor(Source.CLI, "bench", "bench", owner=True)


@asynccontextmanager
async def services(url: str) -> AsyncIterator[Runtime]:
    """Open the services over a database, in the default configuration."""
    async with open_runtime(Settings.model_validate({"database_url": url})) as opened:
        yield opened


def request(type: str, number: int = 0) -> Invocation:
    """Return a small request."""
    return invocation(type=type, payload={"i": number})


def batches(jobs: int, type: str = "noop") -> list[list[Invocation]]:
    """Return so many requests, a thousand in each batch but the last."""
    every = [request(type, number) for number in range(jobs)]
    return [every[begin : begin + BATCH] for begin in range(0, jobs, BATCH)]


async def fill(rt: Runtime, jobs: int, type: str = "noop") -> list[int]:
    """Submit so many jobs; return their numbers."""
    made: list[int] = []
    for batch in batches(jobs, type):
        made += [item.number for item in await rt.intake.submit_many(batch, ME)]
    return made
