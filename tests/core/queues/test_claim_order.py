"""The jobs of a claim and their order, however they are found: by queue, or by type."""

from __future__ import annotations

import random

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.queues.test_queues import claim
from tests.support.statements import rows, run

QUEUES = ("b", "d", "a", "e", "c")
"""The queues of the worker, in its order; `f` is of others."""
TYPES = ("noop", "report")


@pytest.mark.parametrize("found_by_type", ["false", "number % 2 = 0", "true"])
async def test_a_claim_takes_the_first_jobs_of_its_queues_and_types(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection, found_by_type: str
) -> None:
    chooser = random.Random(7)
    reserving = []
    for queue in ("d", "f"):
        request = invocation(type="noop", queue=queue, priority=-9)
        job, _ = await rt.reservations.submit(request, owner, 600)
        reserving.append(job.number)
    for queue, paused in (
        ("b", "report"),
        ("c", None),
        ("e", "noop"),
        ("f", None),
        ("f", "report"),
    ):
        await rt.queues.pause(queue, owner, "maintenance", paused)
    for _ in range(70):
        await make.queued(
            queue=chooser.choice((*QUEUES, "f")),
            type=chooser.choice((*TYPES, "other")),
            priority=chooser.choice((0, 0, 5)),
        )
    await run(conn, "UPDATE draftsman.job_states SET position = 1 + number * 7 % 5")
    await run(conn, f"UPDATE draftsman.job_states SET by_type = true WHERE {found_by_type}")
    stored = await rows(
        conn,
        "SELECT queue, type, number FROM draftsman.job_states"
        " ORDER BY priority DESC, position, number",
    )
    expected = reserving[:1] + [
        number
        for queue in ("b", "a", "e")
        for of, type, number in stored
        if of == queue and type in TYPES and (queue, type) not in (("b", "report"), ("e", "noop"))
    ]
    assert len(expected) > 15
    claimed = list[int]()
    for free in (1, 6, 100):
        jobs = await claim(conn, make, *QUEUES, free=free, types=TYPES)
        claimed += [job.number for job in jobs]
        assert claimed == expected[: len(claimed)]
    assert claimed == expected


async def test_a_claim_after_a_job_takes_the_next_of_its_queue_and_priority(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    chooser = random.Random(7)
    for _ in range(60):
        await make.queued(
            queue=chooser.choice(("a", "b")),
            type=chooser.choice((*TYPES, "other")),
            priority=chooser.choice((0, 0, 5)),
        )
    await run(conn, "UPDATE draftsman.job_states SET position = 1 + number * 7 % 5")
    waiting = await rows(
        conn,
        "SELECT number, queue, priority, position, type FROM draftsman.job_states"
        " ORDER BY priority DESC, position, number",
    )
    stored = {job[0]: job for job in waiting}
    taken = set[int]()
    while len(taken) < 30:
        number, queue, priority, position, _ = stored[chooser.choice([*stored])]
        expected = [
            job[0]
            for job in waiting
            if job[1:3] == (queue, priority)
            and (job[3], job[0]) > (position, number)
            and job[4] in TYPES
            and job[0] not in taken
        ]
        free = chooser.randint(1, 4)
        jobs = await claim(conn, make, "a", "b", free=free, types=TYPES, after=number)
        assert [job.number for job in jobs] == expected[:free]
        taken |= set(expected[:free])
    first = next(job[0] for job in waiting if job[1] == "a")
    assert await claim(conn, make, "b", types=TYPES, after=first) == [], "another serves its queue"
    await rt.queues.pause("a", owner, "maintenance")
    assert await claim(conn, make, "a", types=TYPES, after=first) == []


@pytest.mark.parametrize(
    ("paused", "type", "is_claimed"),
    [
        ("q", None, False),
        ("q", "noop", False),
        ("q", "report", True),
        ("other", None, True),
    ],
)
async def test_a_reserving_job_waits_for_the_pauses_of_its_own_queue(
    rt: Runtime,
    make: Factory,
    owner: Actor,
    conn: Connection,
    paused: str,
    type: str | None,
    is_claimed: bool,
) -> None:
    job, _ = await rt.reservations.submit(invocation(type="noop", queue="q"), owner, 600)
    await rt.queues.pause(paused, owner, "maintenance", type)
    assert await claim(conn, make, "other") == []
    claimed = [found.number for found in await claim(conn, make, "q")]
    assert claimed == ([job.number] if is_claimed else [])
