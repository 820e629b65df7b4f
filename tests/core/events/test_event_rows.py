"""Events of a statement that differ only in their job are a row; each reader sees all of them."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import pytest

import draftsman
from draftsman.database.database import Connection
from draftsman.errors import Failure
from draftsman.events.event import Event
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import TERMINAL, Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Cancel, Done, Outcome, Snooze
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.workers import BlockingHandler, running_worker, runtime_with
from tests.support.event_history import wait_for_feed
from tests.support.statements import rows, value

BLOCK: Final = 128
"""Jobs whose numbers may share a row."""
ROWS: Final = "SELECT kind FROM draftsman.job_events WHERE jobs IS NOT NULL GROUP BY kind"
ENDED: Final = {*TERMINAL, Status.SCHEDULED}
FOLDERS: Final = ("core", "bots", "tui", "soak", "migrations")
READ: Final = re.compile(r"(?<!INSERT INTO )draftsman\.job_events\b")


class _Mixed(BlockingHandler):
    """Ends runs together, each with the outcome that its job's payload names."""

    async def __call__(self, ctx: RunContext) -> Outcome:
        await super().__call__(ctx)
        match ctx.job.payload["n"] % 7:
            case 0:
                return Done({"summary": "the same for all"})
            case 1:
                return Done({"summary": f"number {ctx.job.payload['n']}"})
            case 2:
                return Cancel("not needed")
            case 3:
                return Snooze(3600.0)
            case 4:
                raise Failure("broken", declared="PERMANENT")
            case _:
                return Done()


async def _submitted(rt: Runtime, make: Factory, count: int, *, together: bool) -> list[int]:
    requests = [invocation(type="noop", payload={"n": n}) for n in range(count)]
    if together:
        return [job.number for job in await rt.submissions.submit_many(requests, make.owner)]
    return [(await rt.submissions.submit(request, make.owner)).number for request in requests]


async def _run(rt: Runtime, jobs: list[int], *, slots: int) -> None:
    """Run each job once, as many at a time as there are slots."""
    handler = _Mixed()

    async def ended() -> bool:
        return all([(await rt.read_model.job(job)).status in ENDED for job in jobs])

    async with running_worker(runtime_with(rt), {"noop": handler}, slots=slots):
        for _ in range(slots):
            await handler.next()
        handler.go.set()
        await until(ended, "the ends of all jobs")


def _told(event: Event) -> tuple[Any, ...]:
    """Return what an event says, without its time and its worker."""
    payload = {key: text for key, text in event.payload.items() if not key.endswith("_at")}
    who = re.sub("worker:[-0-9a-f]+", "worker", f"{event.actor} {json.dumps(payload)}")
    return event.kind, event.from_status, event.to_status, event.run, who


async def _history(rt: Runtime, jobs: list[int]) -> list[list[tuple[Any, ...]]]:
    return [[_told(event) for event in await rt.read_model.job_events(job)] for job in jobs]


async def test_jobs_have_the_same_events_as_if_each_had_its_own_rows(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    alone = await _submitted(rt, make, 14, together=False)
    await _run(rt, alone, slots=1)
    assert await rows(conn, ROWS) == []
    together = await _submitted(rt, make, 14, together=True)
    await _run(rt, together, slots=14)
    shared = {kind for (kind,) in await rows(conn, ROWS)}
    assert shared >= {"job_created", "job_started", "job_completed"}
    assert await _history(rt, together) == await _history(rt, alone)
    assert not any((await rt.read_model.invariants()).values())


async def _across_blocks(rt: Runtime, make: Factory, conn: Connection) -> list[int]:
    """Create and cancel jobs of three blocks, in one statement each, and write notes between."""
    jobs = await _submitted(rt, make, 2 * BLOCK + 10, together=True)
    note = "INSERT INTO draftsman.job_events (job, kind, actor) VALUES (%s, 'note', 'a')"
    for job in (jobs[0], jobs[BLOCK - 2], jobs[BLOCK - 1], jobs[BLOCK]):
        await conn.execute(note, (job,))
    await conn.execute(
        "UPDATE draftsman.job_states SET status = 'canceled', version = 2, finished_at = now(),"
        " cancel_requested_at = now(), cancel_requested_by = 'anna', cancel_reason = 'late'"
        " WHERE number % 3 <> 0"
    )
    return jobs


async def test_every_reader_of_a_job_has_the_same_events(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    jobs = await _across_blocks(rt, make, conn)
    await wait_for_feed(rt)
    stream: dict[int, list[Event]] = defaultdict(list)
    for event in await rt.read_model.events(limit=10_000):
        stream[event.job].append(event)
    assert sorted(stream) == jobs
    ids = [event.id for events in stream.values() for event in events]
    assert len(set(ids)) == len(ids)
    for job in jobs:
        events = await rt.read_model.job_events(job)
        kinds = [event.kind for event in events]
        assert kinds[0] == "job_created"
        assert (kinds[-1] == "job_canceled") == (job % 3 != 0)
        assert events == stream[job]
        in_view = await rows(
            conn, "SELECT id, kind FROM draftsman.events WHERE job = %s ORDER BY id", (job,)
        )
        assert in_view == [(event.id, event.kind) for event in events]
        for after in range(len(events)):
            cursor = events[after].id
            assert await rt.read_model.job_events(job, cursor) == events[after + 1 :]
            assert await rt.read_model.job_events(job, cursor - 1, 1) == [events[after]]
            assert (await rt.read_model.latest_job_events(job, 0, after + 1)) == events[
                -after - 1 :
            ]


@pytest.mark.parametrize("page", [1, 7, 200])
async def test_pages_of_the_feed_begin_and_end_within_rows(
    rt: Runtime, make: Factory, conn: Connection, page: int
) -> None:
    jobs = await _submitted(rt, make, 20, together=True)
    await _run(rt, jobs, slots=20)
    await wait_for_feed(rt)
    everything = await rt.read_model.events(limit=10_000)
    assert len(everything) == await value(conn, "SELECT count(*) FROM draftsman.events")
    assert len({event.id for event in everything}) == len(everything)
    start = (0, 0, 0)
    forwards: list[Event] = []
    while events := await rt.read_model.events(forwards[-1].cursor if forwards else start, page):
        forwards += events
    assert forwards == everything
    end = await rt.read_model.end_cursor()
    backwards: list[Event] = []
    while events := await rt.read_model.latest_events(
        backwards[-1].cursor if backwards else end, page
    ):
        backwards += events
    assert backwards[::-1] == everything
    kinds = ("job_failed", "job_canceled")
    found: list[Event] = []
    cursor: tuple[int, int, int] | None = start
    while cursor:
        events, cursor = await rt.read_model.events_of_kinds(kinds, cursor, page)
        found += events
    assert found == [event for event in everything if event.kind in kinds]


def test_only_the_views_read_rows() -> None:
    """Whoever reads the table would miss the jobs that share a row."""
    root = Path(draftsman.__path__[0]).parents[1]
    reading = {
        path.relative_to(root).as_posix()
        for folder in FOLDERS
        for path in (root / folder).rglob("*.sql")
        if READ.search(re.sub("--.*", "", path.read_text()))
    }
    assert reading == {"migrations/0004_events.sql", "migrations/functions/events.sql"} | {
        "core/draftsman/events/store.sql",  # COPY of an archive
        "core/draftsman/jobs/details/invariants.sql",
    }
