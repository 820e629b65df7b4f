"""Submission: a job for each key, an active job for each subject, in the order submitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final

import pytest

from draftsman.database.database import Connection
from draftsman.errors import IdempotencyConflict, NotPermitted
from draftsman.jobs.job import Mode, OnLost, Status
from draftsman.jobs.requests.service.submissions import SubmittedJob, invocation
from draftsman.jobs.runs.store import jobs as job_store
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.support.statements import rows, value


async def _submit(rt: Runtime, owner: Actor, **fields: Any) -> SubmittedJob:
    return await rt.submissions.submit(invocation(**{"type": "noop"} | fields), owner)


async def test_a_new_request_creates_a_job(rt: Runtime, owner: Actor) -> None:
    submitted = await _submit(rt, owner)
    job = await rt.read_model.job(submitted.number)
    assert (submitted.outcome, submitted.status, submitted.name) == (
        "created",
        Status.QUEUED,
        f"D-{submitted.number}",
    )
    assert (job.id, job.status, job.version, job.run_count) == (submitted.id, Status.QUEUED, 1, 0)
    assert job.idempotency_key == f"auto:{submitted.id}"
    assert job.queued_at is not None


async def test_only_a_job_that_existed_is_locked_to_add_a_target(
    rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked: list[int] = []

    async def record(_: Connection, jobs: Sequence[int]) -> list[int]:
        locked.extend(jobs)
        return locked

    monkeypatch.setattr(job_store, "lock_jobs", record)
    await _submit(rt, owner, notify=("log",))
    assert locked == []
    active = await _submit(rt, owner, subject_key="card")
    joined = await _submit(rt, owner, subject_key="card", key="other", notify=("log",))
    assert (joined.number, locked) == (active.number, [active.number])


FULL: Final[dict[str, Any]] = {
    "type": "report",
    "subject_key": "card",
    "queue": "slow",
    "priority": 7,
    "mode": Mode.INVESTIGATE,
    "source_type": "ticket",
    "external_event_id": "E1",
    "agent": "tidy",
    "repo": "https://host/acme/app",
    "title": "Title",
    "text": 'a "text", {of} \\ two\nlines',
    "url": "https://host/1",
    "payload": {"a": [1, None, {"b": "ü"}]},
    "overrides": {"notify": "none"},
    "skills": ("s, 1", 'two"'),
    "tags": ("x", "y z", "{}"),
    "delay": 60.0,
    "max_attempts": 9,
    "max_retries": 8,
    "on_lost": OnLost.FAIL,
}


@pytest.mark.parametrize("fields", [{}, FULL], ids=["same", "different"])
async def test_a_batch_stores_the_same_rows_as_single_requests(
    rt: Runtime, owner: Actor, fields: dict[str, Any]
) -> None:
    requests = [{"type": "noop", "tags": ("same",)}, {"type": "noop", "tags": ("same",)} | fields]
    batch = await rt.submissions.submit_many([invocation(**item) for item in requests], owner)
    for item, stored in zip(requests, batch, strict=True):
        own = {"subject_key": "other"} if "subject_key" in item else {}
        single = await rt.submissions.submit(invocation(**item | own), owner)
        assert await _request(rt, stored.number) == await _request(rt, single.number) | {
            "subject_key": item.get("subject_key")
        }


async def _request(rt: Runtime, number: int) -> dict[str, Any]:
    """Return the fields of a job that do not differ between two equal requests."""
    job = asdict(await rt.read_model.job(number))
    if (run_at := job.pop("run_at")) is not None:
        assert 59 < (run_at - job["created_at"]).total_seconds() < 61
    own = ("number", "id", "idempotency_key", "position", "created_at", "queued_at", "updated_at")
    return {name: value for name, value in job.items() if name not in own}


async def test_without_a_key_each_request_is_a_job(rt: Runtime, owner: Actor) -> None:
    assert (await _submit(rt, owner)).number != (await _submit(rt, owner)).number


async def test_the_same_request_with_the_same_key_is_the_same_job(
    rt: Runtime, owner: Actor
) -> None:
    first = await _submit(rt, owner, key="k", title="one")
    repeated = await _submit(rt, owner, key="k", title="one")
    assert (repeated.number, repeated.id, repeated.outcome) == (
        first.number,
        first.id,
        "deduplicated",
    )


async def test_a_finished_job_is_still_the_job_of_its_key(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    number = await make.completed(key="k")
    repeated = await _submit(rt, owner, key="k")
    assert (repeated.number, repeated.outcome, repeated.status) == (
        number,
        "deduplicated",
        Status.COMPLETED,
    )


async def test_a_key_counts_within_its_type(rt: Runtime, owner: Actor) -> None:
    assert (await _submit(rt, owner, key="k")).outcome == "created"
    assert (await _submit(rt, owner, key="k", type="other")).outcome == "created"


async def test_the_same_key_with_another_request_is_refused_with_its_job(
    rt: Runtime, owner: Actor
) -> None:
    first = await _submit(rt, owner, key="k", title="one")
    with pytest.raises(IdempotencyConflict) as caught:
        await _submit(rt, owner, key="k", title="two")
    assert caught.value.job == first.number
    assert f"for D-{first.number} with a different request" in str(caught.value)


async def test_a_live_job_with_the_same_subject_is_joined(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    first = await _submit(rt, owner, subject_key="card:1")
    joined = await _submit(rt, owner, subject_key="card:1", title="another request")
    assert (joined.number, joined.outcome) == (first.number, "joined")
    (event,) = [
        e for e in await rt.read_model.job_events(first.number) if e.kind == "request_joined"
    ]
    assert event.actor == owner.name
    assert event.payload["requester"] == "root"
    assert event.payload["title"] == "another request"
    await rt.job_control.cancel(first.number, owner)
    assert (await _submit(rt, owner, subject_key="card:1")).outcome == "created"


async def test_a_joining_request_is_stored_once_for_each_key_and_text(
    rt: Runtime, owner: Actor, people: People, conn: Connection
) -> None:
    first = await _submit(rt, owner, subject_key="card:1")
    for _ in range(2):
        await _submit(rt, people.anna, subject_key="card:1", key="k", text="do it\ntwice")
        await _submit(rt, people.erin, subject_key="card:1", text="do it\ntwice")
    events = await rt.read_model.job_events(first.number)
    joins = [event.payload for event in events if event.kind == "request_joined"]
    assert [(entry["requester"], entry["text"]) for entry in joins] == [
        ("anna", "do it\ntwice"),
        ("erin", "do it\ntwice"),
    ]
    join = "SELECT draftsman.join_request(%(job)s, 'cli:x', jsonb_build_object('key', n)) FROM"
    await rows(conn, f"{join} generate_series(1, 300) n", {"job": first.number})
    count = "SELECT count(*) FROM draftsman.job_events WHERE kind = 'request_joined'"
    assert await value(conn, count) == 200


async def test_the_key_decides_before_the_subject(rt: Runtime, owner: Actor) -> None:
    existing = await _submit(rt, owner, key="k", subject_key="card:1")
    await rt.job_control.cancel(existing.number, owner)
    other = await _submit(rt, owner, key="other", subject_key="card:1")
    repeated = await _submit(rt, owner, key="k", subject_key="card:1")
    assert (repeated.number, repeated.outcome) == (existing.number, "deduplicated")
    assert other.number != existing.number


async def test_a_batch_is_answered_in_its_order_with_rising_numbers_and_positions(
    rt: Runtime, owner: Actor
) -> None:
    batch = [invocation(type="noop", key=key, title=key) for key in "dbeac"]
    results = await rt.submissions.submit_many(batch, owner)
    jobs = [await rt.read_model.job(result.number) for result in results]
    assert [job.idempotency_key for job in jobs] == list("dbeac")
    assert [job.number for job in jobs] == sorted(job.number for job in jobs)
    positions = [job.position for job in jobs]
    assert positions == list(range(positions[0], positions[0] + 500, 100))


async def test_equal_looking_values_of_a_batch_are_stored_separately(
    rt: Runtime, owner: Actor
) -> None:
    payloads: list[dict[str, Any]] = [{"n": 1}, {"n": True}, {"n": 1.0}]
    batch = [
        invocation(type="noop", payload=payload, tags=["a"], priority=3) for payload in payloads
    ]
    jobs = [
        await rt.read_model.job(payload.number)
        for payload in await rt.submissions.submit_many(batch, owner)
    ]
    assert [repr(job.payload) for job in jobs] == [repr(payload) for payload in payloads]
    assert {(tuple(job.tags), job.priority) for job in jobs} == {(("a",), 3)}


async def test_a_key_twice_in_one_batch_is_one_job(rt: Runtime, owner: Actor) -> None:
    batch = [invocation(type="noop", key=key) for key in "kxk"]
    results = await rt.submissions.submit_many(batch, owner)
    assert [result.outcome for result in results] == ["created", "created", "deduplicated"]
    assert results[0].number == results[2].number
    assert len(await rt.read_model.jobs()) == 2


async def test_a_key_twice_in_one_batch_with_another_request_is_refused(
    rt: Runtime, owner: Actor
) -> None:
    batch = [invocation(type="noop", key="k", title=title) for title in ("one", "two")]
    with pytest.raises(IdempotencyConflict, match="'k'"):
        await rt.submissions.submit_many(batch, owner)


async def test_a_subject_twice_in_one_batch_is_one_job(rt: Runtime, owner: Actor) -> None:
    batch = [invocation(type="noop", subject_key="card:1", title=title) for title in ("a", "b")]
    results = await rt.submissions.submit_many(batch, owner)
    assert [result.outcome for result in results] == ["created", "joined"]
    assert results[0].number == results[1].number


async def test_a_batch_reports_existing_and_new_jobs(rt: Runtime, owner: Actor) -> None:
    old = await _submit(rt, owner, key="old")
    batch = [invocation(type="noop", key=key) for key in ("new", "old", "newer")]
    results = await rt.submissions.submit_many(batch, owner)
    assert [result.outcome for result in results] == ["created", "deduplicated", "created"]
    assert results[1].number == old.number


async def test_a_conflict_in_a_batch_loses_none_of_the_others(rt: Runtime, owner: Actor) -> None:
    await _submit(rt, owner, key="taken")
    batch = [invocation(type="noop", key=key, title="new") for key in ("a", "taken", "b")]
    with pytest.raises(IdempotencyConflict, match="'taken'"):
        await rt.submissions.submit_many(batch, owner)
    batch = [invocation(type="noop", key=key, title="new") for key in ("a", "b")]
    repeated = await rt.submissions.submit_many(batch, owner)
    assert [result.outcome for result in repeated] == ["deduplicated", "deduplicated"]


async def test_an_empty_batch_creates_no_job(rt: Runtime, owner: Actor) -> None:
    assert await rt.submissions.submit_many([], owner) == []


async def test_a_batch_of_a_thousand_requests_creates_a_thousand_jobs(
    rt: Runtime, owner: Actor
) -> None:
    results = await rt.submissions.submit_many([invocation(type="noop")] * 1000, owner)
    assert len({result.number for result in results}) == 1000
    assert (await rt.read_model.stats()).jobs["queued"] == 1000


@pytest.mark.parametrize("due", [{"delay": 3600}, {"run_at": "2199-01-01T00:00:00Z"}])
async def test_a_job_due_later_is_scheduled(rt: Runtime, owner: Actor, due: dict[str, Any]) -> None:
    submitted = await _submit(rt, owner, **due)
    job = await rt.read_model.job(submitted.number)
    assert submitted.status is job.status is Status.SCHEDULED
    assert job.run_at is not None
    assert job.run_at > job.created_at + timedelta(minutes=59)
    assert job.queued_at is None


async def test_a_job_due_earlier_is_queued(rt: Runtime, owner: Actor) -> None:
    submitted = await _submit(rt, owner, run_at="2001-01-01T00:00:00Z")
    assert submitted.status is Status.QUEUED


async def test_the_limits_of_the_type_are_fixed_at_intake(rt: Runtime, owner: Actor) -> None:
    agent = await rt.read_model.job((await _submit(rt, owner, type="run_agent")).number)
    other = await rt.read_model.job((await _submit(rt, owner)).number)
    own = await _submit(rt, owner, max_attempts=1, max_retries=9, on_lost=OnLost.FAIL)
    stored = await rt.read_model.job(own.number)
    assert (agent.max_attempts, agent.max_retries, agent.on_lost) == (3, 5, OnLost.RESUME)
    assert (other.max_attempts, other.max_retries, other.on_lost) == (3, 3, OnLost.RETRY)
    assert (stored.max_attempts, stored.max_retries, stored.on_lost) == (1, 9, OnLost.FAIL)


async def test_every_field_of_the_request_is_stored(rt: Runtime, people: People) -> None:
    submitted = await _submit(
        rt,
        people.on("slack", "anna"),
        queue="q",
        priority=7,
        mode="investigate",
        external_event_id="E1",
        agent="tidy",
        repo="git@host:acme/app.git",
        ref="main",
        text="\nFirst line\nsecond",
        url="https://host/1",
        payload={"a": [1, None, {"b": "c"}]},
        overrides={"x": 1},
        skills=["two", "one"],
        tags=["t"],
    )
    job = await rt.read_model.job(submitted.number)
    assert (job.queue, job.priority, job.agent_request.mode, job.agent_request.agent) == (
        "q",
        7,
        Mode.INVESTIGATE,
        "tidy",
    )
    assert (job.source, job.invoker_id, job.invoker_display_name) == ("slack", "anna", "Anna")
    assert (job.agent_request.repo_owner, job.agent_request.repo_name, job.agent_request.repo) == (
        "acme",
        "app",
        "acme/app",
    )
    assert (job.title, job.agent_request.text) == ("First line", "\nFirst line\nsecond")
    assert (job.url, job.external_event_id) == ("https://host/1", "E1")
    repo = {"source": "git@host:acme/app.git", "ref": "main"}
    assert job.payload == {"a": [1, None, {"b": "c"}], "repo": repo}
    assert (job.overrides, job.agent_request.skills, job.tags) == ({"x": 1}, ["two", "one"], ["t"])


async def test_only_an_invoker_may_submit(rt: Runtime, people: People) -> None:
    for actor in (people.ben, people.carol, people.olga, people.on("slack", "stranger")):
        with pytest.raises(NotPermitted, match="allowed: anna, erin"):
            await _submit(rt, actor)
    assert await rt.read_model.jobs() == []


async def test_a_person_is_known_by_the_id_of_the_channel(rt: Runtime) -> None:
    submitted = await _submit(rt, Actor("slack", "U-ANNA", "Anna"))
    assert (await rt.read_model.job(submitted.number)).invoker_id == "anna"


@pytest.mark.parametrize("field", ["subject_key", "concurrency_key"])
async def test_a_batch_with_any_number_of_names_has_few_locks(
    rt: Runtime, owner: Actor, conn: Connection, field: str
) -> None:
    requests = [invocation(**{"type": "noop", field: f"name {n}"}) for n in range(2500)]
    async with conn.transaction():
        await rt.submissions.submit_many(requests, owner, connection=conn)
        ((locks,),) = await rows(
            conn,
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
        )
    assert 0 < locks <= 1024
