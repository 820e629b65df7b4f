"""Generated workflows, run by two workers, end as a model in plain Python says."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import pytest

from draftsman.errors import Failure, Refused
from draftsman.jobs.job import Condition, Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.queues.test_queues import claim
from tests.support.slow import slow_except

MOST: Final = 14
"""Maximum number of jobs of a workflow."""
SEEDS: Final = 40
FAST: Final = range(6)
IDLE: Final = 5
"""Claims without a job after which a worker ends."""


@dataclass(frozen=True)
class Node:
    """A job of a generated workflow: its parents by index, and how its run ends."""

    parents: tuple[int, ...]
    on: Condition
    completes: bool
    canceled: bool
    key: str | None
    in_batch: bool


def workflow(chance: random.Random) -> list[Node]:
    """Generate nodes, parents first."""
    return [
        Node(
            parents=tuple(chance.sample(range(index), min(index, chance.randint(0, 3)))),
            on=chance.choice(list(Condition)),
            completes=chance.random() < 0.7,
            canceled=chance.random() < 0.1,
            key=chance.choice([None, None, "a", "b"]),
            in_batch=chance.random() < 0.5,
        )
        for index in range(chance.randint(1, MOST))
    ]


def final_statuses(nodes: list[Node]) -> list[Status]:
    """Return how each job ends."""
    ends: list[Status] = []
    for node in nodes:
        completed = [ends[parent] is Status.COMPLETED for parent in node.parents]
        allowed = {
            Condition.SUCCESS: all(completed),
            Condition.FAILURE: not any(completed),
            Condition.ANY: True,
        }[node.on]
        if node.canceled or (node.parents and not allowed):
            ends.append(Status.CANCELED)
        else:
            ends.append(Status.COMPLETED if node.completes else Status.FAILED)
    return ends


async def submit(rt: Runtime, owner: Actor, nodes: list[Node]) -> list[int]:
    """Submit a workflow: in batches whose requests name each other, and one by one."""
    numbers: list[int] = []
    batch: list[Node] = []

    async def send() -> None:
        first = len(numbers)
        items = []
        for place, node in enumerate(batch):
            after = [f"n{p}" if p >= first else numbers[p] for p in node.parents]
            fields: dict[str, Any] = {"after": after, "on": node.on} if after else {}
            items.append(
                invocation(
                    type="noop",
                    queue="q",
                    name=f"n{first + place}",
                    concurrency_key=node.key,
                    **fields,
                )
            )
        jobs = await rt.submissions.submit_many(items, owner)
        numbers.extend(job.number for job in jobs)
        batch.clear()

    for node in nodes:
        batch.append(node)
        if not node.in_batch:
            await send()
    if batch:
        await send()
    return numbers


async def work(rt: Runtime, make: Factory, ends: dict[int, bool], seed: int) -> None:
    """Claim and end jobs until none is left."""
    chance = random.Random(seed)
    idle = 0
    held: list[ClaimedJob] = []
    while idle < IDLE:
        async with rt.db.connection() as conn:
            claimed = await claim(conn, make, free=chance.randint(1, 3))
        held += claimed
        idle = 0 if held else idle + 1
        if held:
            job = held.pop(chance.randrange(len(held)))
            if ends[job.number]:
                await rt.settlement.outcome(job, Done())
            else:
                await rt.settlement.failure(job, Failure("broken", declared="PERMANENT"))
        await asyncio.sleep(0)


@pytest.mark.parametrize("seed", slow_except(FAST, range(SEEDS)))
async def test_a_workflow_ends_as_the_model_says(
    rt: Runtime, make: Factory, owner: Actor, seed: int
) -> None:
    chance = random.Random(seed)
    nodes = workflow(chance)
    numbers = await submit(rt, owner, nodes)
    for number, node in zip(numbers, nodes, strict=True):
        if node.canceled:
            with suppress(Refused):  # it was canceled with a parent
                await rt.job_control.cancel(number, owner)
    ends = dict(zip(numbers, (node.completes for node in nodes), strict=True))
    await asyncio.gather(*(work(rt, make, ends, seed * 2 + n) for n in range(2)))
    statuses = [(await rt.read_model.job(number)).status for number in numbers]
    assert statuses == final_statuses(nodes), nodes
    broken = {name: rows for name, rows in (await rt.read_model.invariants()).items() if rows}
    assert broken == {}
