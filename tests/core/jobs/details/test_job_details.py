"""The details of a job: all parts, of the same moment, in few statements."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from draftsman.database.database import Connection
from draftsman.errors import NotFound
from draftsman.jobs.details.job_details import JobDetails
from draftsman.jobs.job import TERMINAL, Status
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import RunStatus
from draftsman.jobs.runs.store import run_state
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.support.statements import run

STATEMENTS = {
    "queued": 4,
    "scheduled": 4,
    "running": 5,
    "canceled": 4,
    "completed": 7,
    "failed": 5,
    "waiting for parents": 6,
    "asking": 11,
    "replaced": 4,
    "replacing": 4,
    "everything": 20,
}
"""Statements that the details of a job cost, with those of its transaction."""


PULL_REQUEST = """
    INSERT INTO draftsman.pull_requests (root, forge, project, number, url, branch, base, head)
    VALUES (%(job)s, 'hub', 'a/r', 7, 'https://hub.example/a/r/7', 'fix', 'main', 'c0ffee')"""
ARCHIVE = """
    INSERT INTO draftsman.event_archives (month, events, sha256, host, path)
    VALUES ('2026-01-01', 3, 'x', 'vm', '/srv/2026-01')"""
ARCHIVED_JOB = """
    INSERT INTO draftsman.archived_jobs (job, month, events, transitions)
    VALUES (%(job)s, '2026-01-01', 3, 1)"""


async def with_everything(make: Factory, rt: Runtime, people: People, conn: Connection) -> int:
    """Return a job that has every part, although no single job has all of them."""
    parent = await make.completed({"summary": "done"})
    files = [{"reference": {"id": "1"}, "name": "log.txt"}]
    work = await make.asked(
        actor=people.on("slack", "anna"),
        type="run_agent",
        payload={"repo": {"name": "r", "source": "https://hub.example/a/r"}},
        after=(parent,),
        group={"name": "release", "kind": "parallel"},
        notify=("log",),
        attachments=files,
    )
    number = work.number
    await make.answer(number, "red", people.anna)
    await rt.messages.send(number, people.on("slack", "anna"), "Use the v2 API")
    work = await make.running(number)
    await rt.checkpoints.begin_step(work.lease, "page", "1")
    await rt.checkpoints.artifact(work.lease, "report.json", "report", b"{}")
    await rt.checkpoints.event(work.lease, "sandbox_applied", {"mode": "bwrap"})
    await rt.checkpoints.save(work.lease, {"page": 1})
    await rt.workflows.spawn(work, "part", "noop", {})
    await make.queued(after=(number,))
    await run(conn, PULL_REQUEST, {"job": number})
    await run(conn, ARCHIVE)
    await run(conn, ARCHIVED_JOB, {"job": number})
    return number


async def jobs(make: Factory, rt: Runtime, people: People, conn: Connection) -> dict[str, int]:
    parent = await make.running()
    done = await make.running()
    await rt.checkpoints.artifact(done.lease, "report.json", "report", b"{}")
    await rt.checkpoints.save(done.lease, {"page": 1})
    await rt.settlement.outcome(done, Done({"summary": "all well"}))
    replaced = await make.queued(key="k", unique={"replace": True})
    return {
        "queued": await make.queued(),
        "scheduled": await make.scheduled(),
        "running": (await make.running()).number,
        "canceled": await make.canceled(),
        "completed": done.number,
        "failed": await make.failed(),
        "waiting for parents": await make.queued(after=(parent.number,)),
        "asking": (await make.asked()).number,
        "replaced": replaced,
        "replacing": await make.queued(key="k", unique={"replace": True}),
        "everything": await with_everything(make, rt, people, conn),
    }


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the statements that psycopg sends from now on."""
    sent: list[str] = []
    execute = psycopg.AsyncCursor.execute
    command = psycopg.AsyncConnection._exec_command

    async def count(cursor: Any, query: Any, params: Any = None, **options: Any) -> Any:
        sent.append(str(query))
        return await execute(cursor, query, params, **options)

    def count_command(conn: Any, statement: Any, **options: Any) -> Any:
        sent.append(str(statement))
        return command(conn, statement, **options)

    monkeypatch.setattr(psycopg.AsyncCursor, "execute", count)
    monkeypatch.setattr(psycopg.AsyncConnection, "_exec_command", count_command)
    return sent


async def test_a_part_that_a_job_does_not_have_costs_no_statement(
    make: Factory,
    rt: Runtime,
    people: People,
    conn: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = await jobs(make, rt, people, conn)
    sent = counted(monkeypatch)
    costs: dict[str, int] = {}
    for name, number in numbers.items():
        sent.clear()
        await rt.read_model.details(number)
        costs[name] = len(sent)
    assert costs == STATEMENTS


async def test_the_parts_are_those_that_each_service_returns(
    make: Factory, rt: Runtime, people: People, conn: Connection
) -> None:
    for name, number in (await jobs(make, rt, people, conn)).items():
        details = await rt.read_model.details(number)
        questions, answers = await rt.questions.of_job(number)
        steps, checkpoints = await rt.checkpoints.progress(number, limit=50)
        tree = await rt.workflows.tree(number)
        expected = {
            "job": await rt.read_model.job(number),
            "version": await rt.read_model.version(number),
            "runs": await rt.read_model.runs(number),
            "questions": questions,
            "answers": answers,
            "open_questions": await rt.questions.open_of([number]),
            "attention": await rt.acknowledgments.attention([number]),
            "artifacts": await rt.checkpoints.artifacts(number),
            "steps": steps,
            "checkpoints": checkpoints,
            "retry_chain": await rt.read_model.chain(number),
            "replacement": await rt.read_model.replacement(number),
            "archives": await rt.archives.of_job(number),
            "occurrence": await rt.schedules.of_job(number),
            "group": await rt.workflows.groups.of_job(number),
            "messages": await rt.messages.of_job(number),
            "attachments": await rt.attachments.of_job(number),
            "family": await rt.forge_events.follow_ups.family(number),
            "targets": await rt.outbox.targets(number),
            "deliveries": await rt.outbox.all(number, limit=200),
            "events": await rt.read_model.latest_job_events(number),
        }
        assert {part: getattr(details, part) for part in expected} == expected, name
        assert (details.tree.parents, details.tree.spawned_by) == (tree.parents, tree.spawned_by)
        assert details.tree.jobs == (tree.jobs if tree.total > 1 else []), name
        why = await rt.read_model.why(number)
        assert (details.wait_reason.reason, details.is_over) == (why.reason, why.status in TERMINAL)
    _assert_has_all(details)


def _assert_has_all(details: JobDetails) -> None:
    """A part that is empty here would be compared with nothing."""
    empty = {name for name in JobDetails.__slots__ if not getattr(details, name)}
    assert empty == {
        "open_questions",
        "attention",
        "occurrence",
        "unserved",
        "has_earlier_events",
        "earlier_events",
    }


async def test_retries_are_read_from_each_job_of_their_chain(make: Factory, rt: Runtime) -> None:
    first = await make.failed()
    second = (await rt.job_control.retry(first, make.owner)).number
    for number in (first, second):
        chain = (await rt.read_model.details(number)).retry_chain
        assert [link.number for link in chain] == [first, second]


async def test_all_parts_are_of_the_same_moment(
    make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends after the job was read, and before its runs are."""
    work = await make.running()
    runs = run_state.runs

    async def end_first(conn: Connection, job: int) -> Any:
        await rt.settlement.outcome(work, Done({}))
        return await runs(conn, job)

    with monkeypatch.context() as patch:
        patch.setattr(run_state, "runs", end_first)
        before = await rt.read_model.details(work.number)
    after = await rt.read_model.details(work.number)
    assert (before.job.status, before.runs[0].status) == (Status.RUNNING, RunStatus.RUNNING)
    assert (after.job.status, after.runs[0].status) == (Status.COMPLETED, RunStatus.COMPLETED)


async def test_earlier_events_are_read_only_for_what_the_details_show(
    make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    await rt.checkpoints.event(work.lease, "sandbox_applied", {"mode": "bwrap"})
    for nth in range(5):
        await rt.checkpoints.event(work.lease, f"noted_{nth}", {})
    details = await rt.read_model.details(work.number, events=3)
    assert [event.kind for event in details.events] == ["noted_2", "noted_3", "noted_4"]
    assert [event.kind for event in details.earlier_events] == ["sandbox_applied"]
    assert details.sandbox == {"mode": "bwrap"}


async def test_an_unknown_job_has_no_details(rt: Runtime) -> None:
    with pytest.raises(NotFound, match="draftsman jobs"):
        await rt.read_model.details(999)
