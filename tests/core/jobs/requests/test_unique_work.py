"""Unique work: a request joins or replaces an earlier job that is equal, within a time."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Failure, UsageError
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import SubmittedJob, invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.support.cases import cases
from tests.support.clock import Clock
from tests.support.statements import TRANSITION, refused

HOUR = 3600.0


async def _submit(rt: Runtime, actor: Actor, **fields: Any) -> SubmittedJob:
    return await rt.submissions.submit(invocation(**{"type": "noop"} | fields), actor)


@pytest.mark.parametrize(
    ("common", "other"),
    [
        ({"key": "nightly"}, {"key": "weekly"}),
        ({"subject_key": "card:1"}, {"subject_key": "card:2"}),
        ({"payload": {"week": 7}}, {"payload": {"week": 8}}),
    ],
    ids=["key", "subject", "args"],
)
async def test_an_equal_request_joins_the_job_of_the_period(
    rt: Runtime, owner: Actor, make: Factory, clock: Clock, common: Any, other: Any
) -> None:
    unique = {"seconds": HOUR}
    first = await _submit(rt, owner, unique=unique, **common)
    await rt.settlement.outcome(await make.running(first.number), Done({}))
    joined = await _submit(rt, owner, unique=unique, **common)
    assert (joined.number, joined.outcome, joined.status) == (
        first.number, "joined", Status.COMPLETED,
    )  # fmt: skip
    assert (await _submit(rt, owner, unique=unique, **other)).outcome == "created"
    await clock.forward(HOUR + 1)
    later = await _submit(rt, owner, unique=unique, **common)
    assert (later.outcome, later.number > first.number) == ("created", True)


async def test_the_request_that_joined_is_kept_with_its_text(rt: Runtime, owner: Actor) -> None:
    first = await _submit(rt, owner, key="k", unique={"seconds": HOUR}, text="Tidy")
    joined = await _submit(rt, owner, key="k", unique={"seconds": HOUR}, text="Tidy the stock")
    assert joined.number == first.number
    events = await rt.read_model.job_events(first.number)
    assert [event.payload["text"] for event in events if event.kind == "request_joined"] == [
        "Tidy the stock"
    ]


@pytest.mark.parametrize(
    ("unique", "status", "outcome"),
    [
        ({}, Status.RUNNING, "joined"),
        ({}, Status.COMPLETED, "created"),
        ({"seconds": HOUR}, Status.COMPLETED, "joined"),
        ({"seconds": HOUR}, Status.FAILED, "created"),
        ({"seconds": HOUR}, Status.CANCELED, "created"),
        ({"seconds": HOUR, "states": "any"}, Status.FAILED, "joined"),
        ({"seconds": HOUR, "states": "unfinished"}, Status.COMPLETED, "created"),
        ({"states": "successful"}, Status.COMPLETED, "joined"),
    ],
)
async def test_the_states_that_count(
    rt: Runtime, owner: Actor, make: Factory, unique: Any, status: Status, outcome: str
) -> None:
    first = await _submit(rt, owner, unique=unique)
    if status is Status.CANCELED:
        await rt.job_control.cancel(first.number, owner)
    else:
        lease = await make.running(first.number)
        if status is Status.FAILED:
            await rt.settlement.failure(lease, Failure("no", declared="PERMANENT"))
        elif status is Status.COMPLETED:
            await rt.settlement.outcome(lease, Done({}))
    assert (await rt.read_model.job(first.number)).status is status
    assert (await _submit(rt, owner, unique=unique)).outcome == outcome


async def test_a_job_that_has_not_started_is_replaced(
    rt: Runtime, owner: Actor, make: Factory
) -> None:
    fields: dict[str, Any] = {"subject_key": "pr-7", "unique": {"replace": True}}
    first = await _submit(rt, owner, text="first", **fields)
    second = await _submit(rt, owner, text="second", **fields)
    assert second.outcome == "created"
    old = await rt.read_model.job(first.number)
    assert (old.status, old.cancel_reason) == (Status.CANCELED, "replaced by a newer request")
    assert (await rt.read_model.replacement(first.number)).replaced_by == second.number
    assert (await rt.read_model.replacement(second.number)).replaces == first.number
    await make.running(second.number)
    third = await _submit(rt, owner, text="third", **fields)
    assert (third.outcome, third.number) == ("joined", second.number)


@pytest.mark.parametrize("unique", [{"replace": True}, {"debounce": 30}])
async def test_a_job_that_was_submitted_without_a_condition_is_replaced_by_its_subject(
    rt: Runtime, owner: Actor, make: Factory, unique: Any
) -> None:
    first = await _submit(rt, owner, text="first", subject_key="pr-7")
    second = await _submit(rt, owner, text="second", subject_key="pr-7", unique=unique)
    assert (second.outcome, second.replaced) == ("created", first.number)
    assert (await rt.read_model.job(first.number)).status is Status.CANCELED
    third = await _submit(rt, owner, text="third", subject_key="pr-7", unique=unique)
    assert third.replaced == second.number
    started = await _submit(rt, owner, subject_key="pr-8", queue="other")
    await make.running(started.number)
    joined = await _submit(rt, owner, subject_key="pr-8", unique=unique)
    assert (joined.outcome, joined.number) == ("joined", started.number)


async def test_debounce_runs_the_newest_request_after_a_pause(
    rt: Runtime, owner: Actor, make: Factory, clock: Clock
) -> None:
    fields: dict[str, Any] = {"subject_key": "pr-7", "unique": {"debounce": 30}}
    first = await _submit(rt, owner, text="first", **fields)
    await clock.forward(20)
    second = await _submit(rt, owner, text="second", **fields)
    assert (second.outcome, second.status) == ("created", Status.SCHEDULED)
    assert (await rt.read_model.job(first.number)).status is Status.CANCELED
    await clock.forward(20)
    assert await rt.sweeps.run_now("promote", owner) == 0
    await clock.forward(11)
    assert await rt.sweeps.run_now("promote", owner) == 1


async def test_a_stream_of_requests_postpones_a_debounced_job_up_to_its_limit(
    rt: Runtime, owner: Actor, make: Factory, clock: Clock
) -> None:
    unique = {"debounce": 30, "debounce_limit": 70}
    fields: dict[str, Any] = {"subject_key": "pr-7", "unique": unique}
    await _submit(rt, owner, text="first", **fields)
    await clock.forward(25)
    await _submit(rt, owner, text="second", **fields)
    await clock.forward(25)
    third = await _submit(rt, owner, text="third", **fields)
    await clock.forward(10)
    assert await rt.sweeps.run_now("promote", owner) == 0
    await clock.forward(11)
    late = await _submit(rt, owner, text="late", **fields)
    assert (late.outcome, late.number) == ("joined", third.number)
    assert await rt.sweeps.run_now("promote", owner) == 1
    queued = await _submit(rt, owner, text="later", **fields)
    assert (queued.outcome, queued.number) == ("joined", third.number)


async def test_the_limit_of_a_debounce_is_ten_periods(
    rt: Runtime, owner: Actor, clock: Clock, conn: Connection
) -> None:
    fields: dict[str, Any] = {"subject_key": "pr-7", "unique": {"debounce": 30}}
    first = await _submit(rt, owner, **fields)
    for _ in range(12):
        await clock.forward(29)
        last = await _submit(rt, owner, **fields)
    assert last.outcome == "joined"
    cursor = await conn.execute(
        "SELECT count(*), count(DISTINCT debounce_until),"
        " extract(epoch FROM min(debounce_until) - min(r.created_at))::int"
        " FROM draftsman.unique_keys u JOIN draftsman.job_requests r ON r.number = u.job"
    )
    assert await cursor.fetchall() == [(11, 1, 300)]
    assert last.number == first.number + 10


@pytest.mark.parametrize(
    ("job", "until", "replaces"),
    [
        ("late", "draftsman.now() + interval '1 min'", "NULL"),
        ("queued", "draftsman.now() + interval '2 h'", "%(pending)s"),
        ("queued", "draftsman.now() + interval '1 min'", "%(over)s"),
    ],
)
async def test_the_database_refuses_to_postpone_past_the_limit(
    rt: Runtime, make: Factory, conn: Connection, job: str, until: str, replaces: str
) -> None:
    jobs = {"pending": await make.queued(), "over": await make.queued()}
    insert = "INSERT INTO draftsman.unique_keys (job, key, debounce_until, replaces) VALUES"
    await conn.execute(f"{insert} (%(pending)s, 'k', draftsman.now() + interval '1 h', NULL)", jobs)
    await conn.execute(f"{insert} (%(over)s, 'k', draftsman.now() + interval '1 us', NULL)", jobs)
    jobs |= {"late": await make.scheduled(), "queued": await make.queued()}
    async with refused(TRANSITION, "past the limit of its debounce"):
        await conn.execute(f"{insert} (%({job})s, 'k', {until}, {replaces})", jobs)


async def test_debounce_of_work_that_has_started_is_a_job_of_its_own(
    rt: Runtime, owner: Actor, make: Factory, clock: Clock
) -> None:
    fields: dict[str, Any] = {"payload": {"pr": 7}, "unique": {"debounce": 30}}
    first = await _submit(rt, owner, **fields)
    await clock.forward(31)
    await rt.sweeps.run_now("promote", owner)
    await make.running(first.number)
    second = await _submit(rt, owner, **fields)
    assert second.outcome == "created"
    third = await _submit(rt, owner, **fields)
    assert (await rt.read_model.replacement(third.number)).replaces == second.number
    assert (await rt.read_model.job(first.number)).status is Status.RUNNING


async def test_equal_requests_of_a_batch_are_one_job(rt: Runtime, owner: Actor) -> None:
    request = invocation(type="noop", payload={"n": 1}, unique={"seconds": HOUR})
    plain = invocation(type="noop")
    jobs = await rt.submissions.submit_many([request, plain, request], owner)
    assert [job.outcome for job in jobs] == ["created", "created", "joined"]
    assert jobs[0].number == jobs[2].number != jobs[1].number


async def test_the_job_of_another_person_is_joined_not_replaced(
    rt: Runtime, people: People
) -> None:
    fields: dict[str, Any] = {"subject_key": "pr-7", "unique": {"replace": True}}
    first = await _submit(rt, people.anna, **fields)
    second = await _submit(rt, people.erin, **fields)
    assert (second.number, second.outcome) == (first.number, "joined")


async def test_the_idempotency_key_decides_before_the_replacement(
    rt: Runtime, owner: Actor
) -> None:
    fields: dict[str, Any] = {"key": "event-1", "unique": {"by": "args", "replace": True}}
    first = await _submit(rt, owner, **fields)
    again = await _submit(rt, owner, **fields)
    assert (again.number, again.outcome) == (first.number, "deduplicated")
    assert (await rt.read_model.job(first.number)).status is Status.QUEUED


@cases(
    ("fields", "problem"),
    [
        ({"unique": {"by": "key"}}, "unique by key needs a key"),
        ({"unique": {"by": "subject"}}, "unique by subject needs a subject"),
        ({"unique": {"debounce": 30, "seconds": 60}}, "use debounce alone"),
        ({"unique": {"debounce": 30, "states": "any"}}, "omit the states"),
        ({"unique": {"debounce": 30}, "delay": 5}, "use debounce, or run_at or delay"),
        ({"unique": {"debounce": 30, "debounce_limit": 29}}, "at least as long"),
        ({"unique": {"seconds": 30, "debounce_limit": 29}}, "requires a debounce"),
        ({"unique": {"seconds": 0}}, "must be more than 0"),
    ],
)
def test_a_condition_that_has_no_sense_is_refused(fields: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        invocation(type="noop", **fields)


async def test_a_unique_key_is_stored_only_with_its_request(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    number = (await make.running()).number
    async with refused(TRANSITION, "must be stored with its request"):
        await conn.execute(
            "INSERT INTO draftsman.unique_keys (job, key) VALUES (%s, 'k')", (number,)
        )
