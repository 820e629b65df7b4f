"""Data of every release, migrated to this version: complete and usable."""

from __future__ import annotations

from draftsman.database import migrate
from draftsman.database.database import Connection
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import TERMINAL, Status
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.people import People
from draftsman_testing.waits import until
from tests.core.worker.workers import event_kinds, running_worker, runtime_with, wait_for_end
from tests.support.statements import rows
from tests.upgrade.releases import Release, checksums

DEAD = "the release"
"""Version of the worker that held jobs when the release was stopped."""


async def asks(ctx: RunContext) -> Outcome:
    answer = await ctx.ask(QUESTION.key, QUESTION.text, choices=["red", "blue"], never_expires=True)
    return Done({"value": getattr(answer, "value", None)})


async def gates(ctx: RunContext) -> Outcome:
    answer = await ctx.approve(GATE.key, GATE.text, approvers=GATE.approvers)
    return Done({"outcome": answer.outcome})


async def works(ctx: RunContext) -> Outcome:
    async def again(invocation: str) -> dict[str, str]:
        return {"again": invocation}

    paid = await ctx.step("paid", again)
    sent = await ctx.step("sent", again, again)
    return Done({"checkpoint": await ctx.saved(), "paid": paid, "sent": sent})


async def noop(_: RunContext) -> Outcome:
    return Done({})


HANDLERS = {"asks": asks, "gates": gates, "works": works, "noop": noop, "run_agent": noop}


async def by_status(rt: Runtime, *statuses: Status) -> list[int]:
    return sorted(job.number for job in await rt.read_model.jobs(statuses=statuses, limit=1000))


async def test_every_row_is_kept_and_the_data_is_valid(
    release: Release, database_url: str, rt: Runtime
) -> None:
    missing = [n for n in checksums(functions=False) if n not in release.manifest["migrations"]]
    before = {table: release.rows(database_url, table) for table in release.tables}
    assert {table: len(rows_before) for table, rows_before in before.items()} == {
        table: data.count(b"\n") - 1 for table, data in release.tables.items()
    }
    assert await migrate.migrate(database_url) == missing
    await migrate.check(database_url)
    assert {table: release.rows(database_url, table) for table in release.tables} == before
    assert not any((await rt.read_model.invariants()).values())


async def test_unfinished_jobs_of_the_release_complete(
    release: Release,
    database_url: str,
    rt: Runtime,
    people: People,
    make: Factory,
    conn: Connection,
) -> None:
    await migrate.migrate(database_url)
    await migrate.start_epoch(database_url)
    waiting = await by_status(rt, Status.WAITING_FOR_INPUT, Status.WAITING_FOR_APPROVAL)
    held = await by_status(rt, Status.CLAIMED, Status.RUNNING)
    finished = {
        number: await rt.read_model.job(number) for number in await by_status(rt, *TERMINAL)
    }
    live = set(await by_status(rt, *Status)) - finished.keys()
    assert (len(waiting), len(held)) == (7, 5)
    queues = tuple({(await rt.read_model.job(number)).queue for number in live})
    worker_rt = runtime_with(rt, sweeps={"interval": 1})  # a slow machine may miss the first sweep
    for (number,) in await rows(conn, "SELECT job FROM draftsman.job_pauses"):
        await rt.job_control.resume(number, make.owner)
    async with running_worker(worker_rt, HANDLERS, slots=10, leader=True, queues=queues):
        for number in waiting:
            for question in await rt.questions.open(number):
                if question.approvers and question.expires_at is None:
                    await make.decide(number, True, people.carol)
                elif question.expires_at is None:
                    await make.answer(number, "blue")
        jobs = {number: await wait_for_end(rt, number) for number in live}
    expired = [number for number in waiting if jobs[number].status is Status.EXPIRED]
    assert len(expired) == 1
    rest = [job for number, job in jobs.items() if number not in expired]
    assert {job.status for job in rest} == {Status.COMPLETED}
    values = [(job.result or {}).get("value") for job in rest if job.type == "asks"]
    assert sorted(map(str, values)) == ["blue", "blue", "blue", "red"]
    (work,) = (job for job in rest if job.type == "works")
    assert work.result == {
        "checkpoint": {"at": 7, "text": "ä\n\t\\"},
        "paid": {"receipt": 1},
        "sent": {"again": "invocation-2"},
    }
    for number in held:
        assert "job_completed" in await event_kinds(rt, number)
    assert {number: await rt.read_model.job(number) for number in finished} == finished
    assert not any((await rt.read_model.invariants()).values())
    assert DEAD not in {worker.version for worker in await rt.read_model.workers()}


async def test_cursor_of_the_release_continues(
    release: Release, database_url: str, rt: Runtime, make: Factory, conn: Connection
) -> None:
    cursors = await rows(
        conn,
        "SELECT epoch, txid::text::bigint, id FROM draftsman.events"
        " ORDER BY events.epoch, events.txid, events.id",
    )
    await migrate.migrate(database_url)
    await migrate.start_epoch(database_url)  # another server wrote those transaction ids
    middle = len(cursors) // 2
    assert [e.cursor for e in await rt.read_model.events(cursors[middle])] == cursors[middle + 1 :]
    number = await make.queued()

    async def has_new_event() -> (
        bool
    ):  # not before the end of all earlier transactions on the server
        return bool(await rt.read_model.events(cursors[-1]))

    await until(has_new_event, "events after the release")
    (new,) = await rt.read_model.events(cursors[-1])
    assert (new.job, new.kind) == (number, "job_created")
    assert number > max(event.job for event in await rt.read_model.events(limit=len(cursors)))


async def test_files_and_logs_are_readable(database_url: str, rt: Runtime) -> None:
    await migrate.migrate(database_url)
    for number in await by_status(rt, *Status):
        for artifact in await rt.checkpoints.artifacts(number):
            assert await rt.checkpoints.read_artifact(number, artifact.name)
            _, bundle = await rt.checkpoints.latest(number)
            assert bundle == b"a bundle"
            assert [chunk.text for chunk in await rt.checkpoints.logs(number)] == ["a line\n"]
            return
    raise AssertionError("the release left no file")
