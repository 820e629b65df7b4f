"""Jobs that wait for other jobs: conditions, chains, and cancels with a parent."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Failure, NotFound, UsageError
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import SubmittedJob, invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import ClaimedJob, RunStatus
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.queues.test_queues import claim
from tests.support.cases import cases
from tests.support.statements import rows


async def statuses(rt: Runtime, *jobs: int) -> list[str]:
    """Return the statuses of these jobs."""
    return [str((await rt.read_model.job(number)).status) for number in jobs]


async def submit(rt: Runtime, owner: Actor, *requests: dict[str, Any]) -> list[SubmittedJob]:
    """Submit a batch to the queue `q`."""
    items = [invocation(**{"type": "noop", "queue": "q"} | fields) for fields in requests]
    return await rt.submissions.submit_many(items, owner)


async def fail(rt: Runtime, work: ClaimedJob) -> None:
    """Fail the run of a job permanently."""
    status = await rt.settlement.failure(work, Failure("broken", declared="PERMANENT"))
    assert status is Status.FAILED


async def test_a_job_starts_when_its_parents_have_completed(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    one = await make.queued(queue="q")
    two = await make.queued(queue="q")
    child = await make.queued(queue="q", after=(one, two))
    why = await rt.read_model.why(child)
    assert (why.reason, why.text) == ("parents", f"waits for D-{one} (queued), D-{two} (queued)")
    works = await claim(conn, make)
    assert [work.number for work in works] == [one, two]
    await rt.settlement.outcome(works[0], Done())
    assert await claim(conn, make) == []
    assert (await rt.read_model.why(child)).text == f"waits for D-{two} (running)"
    await rt.settlement.outcome(works[1], Done())
    assert [work.number for work in await claim(conn, make)] == [child]


@cases(
    ("on", "end", "starts"),
    [
        ("success", "completed", True),
        ("success", "failed", False),
        ("success", "dead", False),
        ("success", "expired", False),
        ("success", "canceled", False),
        ("failure", "completed", False),
        ("failure", "failed", True),
        ("failure", "dead", True),
        ("failure", "expired", True),
        ("failure", "canceled", True),
        ("any", "completed", True),
        ("any", "failed", True),
        ("any", "canceled", True),
    ],
)
@cases("ended", [False, True], ids=["later", "before"])
async def test_a_condition_is_met_or_cancels_the_child(
    rt: Runtime, make: Factory, conn: Connection, on: str, end: str, starts: bool, ended: bool
) -> None:
    status = {"dead": Status.DEAD_LETTER}.get(end) or Status(end)
    if ended:
        parent = await make.job_in(status)
        child = await make.queued(queue="q", after=(parent,), on=on)
    else:
        parent = await make.queued(max_attempts=1)
        child = await make.queued(queue="q", after=(parent,), on=on)
        await end_as(rt, make, parent, end)
    if starts:
        assert [work.number for work in await claim(conn, make)] == [child]
        return
    assert await claim(conn, make) == []
    job = await rt.read_model.job(child)
    verb = {"dead": "is a dead letter", "canceled": "was canceled"}.get(end, end)
    assert (job.status, job.cancel_requested_by) == (Status.CANCELED, "system")
    assert job.cancel_reason == f"D-{parent} {verb}"
    (run,) = await rt.read_model.runs(child)
    assert run.status is RunStatus.SKIPPED
    events = await rt.read_model.job_events(child)
    assert [(event.kind, event.actor) for event in events[1:]] == [("job_canceled", "system")]
    assert events[1].payload["reason"] == f"D-{parent} {verb}"


async def end_as(rt: Runtime, make: Factory, job: int, end: str) -> None:
    """Run a queued job to this end."""
    if end == "canceled":
        await rt.job_control.cancel(job, make.owner)
        return
    work = await make.running(job)
    match end:
        case "completed":
            await rt.settlement.outcome(work, Done())
        case "failed":
            await fail(rt, work)
        case "dead":
            await rt.settlement.failure(work, Failure("gone"))
        case "expired":
            from draftsman.jobs.runs.run import LeaderTerm
            from draftsman_testing.factories import QUESTION

            item = QUESTION.model_copy(update={"expires_in": 0.000001})
            await rt.asking.ask(work.lease, item)
            await rt.expiry.expire(LeaderTerm())


async def test_a_failure_cancels_all_that_wait_for_success_and_releases_the_others(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    jobs = await submit(
        rt,
        owner,
        {"name": "build"},
        {"name": "test", "after": ["build"]},
        {"name": "deploy", "after": ["test"]},
        {"name": "report", "after": ["deploy"], "on": "any"},
        {"name": "clean", "after": ["test", "deploy"], "on": "failure"},
        {"name": "other"},
        {"after": ["other", "deploy"]},
    )
    numbers = [job.number for job in jobs]
    build, test, deploy, report, clean, other, last = numbers
    works = await claim(conn, make)
    assert [work.number for work in works] == [build, other]
    await fail(rt, works[0])
    assert await statuses(rt, test, deploy, last) == ["canceled"] * 3
    assert (await rt.read_model.job(deploy)).cancel_reason == f"D-{test} was canceled"
    assert [work.number for work in await claim(conn, make)] == [report, clean]
    await rt.settlement.outcome(works[1], Done())
    assert await statuses(rt, last) == ["canceled"]


async def test_requests_of_a_batch_may_come_in_any_order(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection
) -> None:
    last, first, second = await submit(
        rt,
        owner,
        {"after": ["second", "first"]},
        {"name": "first"},
        {"name": "second", "after": "first"},
    )
    assert first.number < second.number < last.number
    for expected in (first, second, last):
        (work,) = await claim(conn, make)
        assert work.number == expected.number
        await rt.settlement.outcome(work, Done())


@pytest.mark.parametrize(
    ("requests", "problem"),
    [
        (
            [{"name": "a", "after": ["c"]}, {"name": "b", "after": ["a"]},
             {"name": "c", "after": ["b"]}, {"name": "d", "after": ["c"]}],
            "after: these requests wait for each other: ",
        ),
        ([{"name": "a", "after": ["a"]}], "after: these requests wait for each other: a -> a"),
        ([{"name": "a"}, {"name": "a"}], "request 2: name 'a' was already used in this batch"),
        (
            [{"name": "build"}, {"after": ["biuld"]}],
            "request 2: after 'biuld': no request of this batch has this name; did you mean build?",
        ),
        ([{"after": ["x"]}], "after 'x': no request of this batch has this name; names: none"),
    ],
)  # fmt: skip
async def test_bad_references_create_no_job(
    rt: Runtime, owner: Actor, conn: Connection, requests: list[dict[str, Any]], problem: str
) -> None:
    with pytest.raises(UsageError) as refused:
        await submit(rt, owner, *requests)
    assert str(refused.value).startswith(problem)
    assert await rows(conn, "SELECT FROM draftsman.job_requests") == []


def test_a_cycle_is_named_in_the_order_in_which_its_jobs_would_run() -> None:
    from draftsman.jobs.requests.batch_plan import batch_order, parents_of

    items = [
        invocation(type="noop", name=name, after=after)
        for name, after in (("a", ["c"]), ("b", ["a"]), ("c", ["b"]), ("d", ["c"]))
    ]
    with pytest.raises(UsageError, match=r"wait for each other: a -> b -> c -> a$"):
        batch_order(items, parents_of(items))


@cases(
    ("fields", "problem"),
    [
        ({"after": ["D-1", "1"]}, "after: the same job is named twice"),
        ({"after": ["not a name"]}, "'not a name' is not a job, such as D-142, or a name"),
        ({"after": [0]}, "'0' is not a job"),
        ({"name": "D-7"}, "name 'D-7' is the name of a job"),
        ({"on": "any"}, "on needs after"),
        ({"after": [1], "on": "never"}, "on"),
        ({"after": [1], "unique": {"seconds": 5}}, "use after or unique, not both"),
    ],
)
def test_bad_fields_are_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError) as refused:
        invocation(type="noop", **fields)
    assert problem in str(refused.value)


async def test_an_unknown_parent_is_refused_and_nothing_is_created(
    rt: Runtime, owner: Actor, conn: Connection
) -> None:
    with pytest.raises(NotFound, match="there is no job D-99"):
        await submit(rt, owner, {"name": "a"}, {"after": ["a", "D-99"]})
    assert await rows(conn, "SELECT FROM draftsman.job_requests") == []


async def test_a_request_with_the_key_of_a_job_keeps_that_job(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection
) -> None:
    batch = ({"name": "a", "key": "a"}, {"key": "b", "after": ["a"]}, {"after": ["a"]})
    first = await submit(rt, owner, *batch)
    again = await submit(rt, owner, *batch)
    assert [job.outcome for job in again] == ["deduplicated", "deduplicated", "created"]
    assert [job.number for job in again[:2]] == [job.number for job in first[:2]]
    (work,) = await claim(conn, make)
    await rt.settlement.outcome(work, Done())
    claimed = {work.number for work in await claim(conn, make)}
    assert claimed == {first[1].number, first[2].number, again[2].number}


async def test_a_job_takes_its_key_after_its_parents(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    parent = await make.running(queue="p")
    child = await make.queued(queue="q", concurrency_key="k", after=(parent.number,))
    other = await make.running(queue="q", concurrency_key="k")
    await rt.settlement.outcome(parent, Done())
    assert (await rt.read_model.why(child)).reason == "key"
    await rt.settlement.outcome(other, Done())
    assert [work.number for work in await claim(conn, make)] == [child]


async def test_a_chain_with_a_single_key_runs_in_order(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    requests = [{"name": f"s{n}", "concurrency_key": "k", "after": [f"s{n - 1}"] if n else []}
                for n in range(4)]  # fmt: skip
    for job in await submit(rt, owner, *requests):
        (work,) = await claim(conn, make)
        assert work.number == job.number
        await rt.settlement.outcome(work, Done())


async def test_a_scheduled_job_waits_for_its_time_and_its_parents(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    from draftsman.jobs.runs.run import LeaderTerm

    parents = [await make.running(queue="p") for _ in range(2)]
    early, late = [
        await make.queued(queue="q", after=(work.number,), delay=3600) for work in parents
    ]
    await rt.settlement.outcome(parents[0], Done())
    assert (await rt.read_model.job(early)).hold is None
    await conn.execute("UPDATE draftsman.job_states SET run_at = now() WHERE run_at IS NOT NULL")
    await rt.promotion.promote(LeaderTerm())
    assert [work.number for work in await claim(conn, make)] == [early]
    assert (await rt.read_model.why(late)).reason == "parents"
    await rt.settlement.outcome(parents[1], Done())
    assert [work.number for work in await claim(conn, make)] == [late]


async def test_a_tree_is_canceled_with_its_root(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    root, other = await submit(rt, owner, {"name": "root"}, {"name": "other"})
    jobs = await submit(
        rt,
        owner,
        {"name": "b", "after": [root.number]},
        {"name": "c", "after": ["b"], "on": "failure"},
        {"name": "d", "after": ["c", other.number], "on": "any"},
    )
    (work, _) = await claim(conn, make)
    results = await rt.job_control.cancel_tree(root.number, owner, "wrong")
    assert [(item.number, item.requested) for item in results] == [
        (root.number, True), *((job.number, False) for job in jobs)]  # fmt: skip
    for job in jobs:
        details = await rt.read_model.job(job.number)
        assert (details.status, details.cancel_reason) == (Status.CANCELED, "wrong")
    await rt.settlement.outcome(work, Done())
    assert await statuses(rt, root.number, other.number) == ["canceled", "running"]
    tree = await rt.workflows.tree(root.number)
    assert [job.number for job in tree.jobs] == [root.number, *(job.number for job in jobs)]
    assert tree.jobs[-1].parents == [jobs[1].number]
