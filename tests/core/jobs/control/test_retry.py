"""Retry: a single new job of a finished job, with its checkpoint and without its answers."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from draftsman.errors import NotFound, NotPermitted, Refused, UsageError
from draftsman.jobs.control.service import control as job_control
from draftsman.jobs.job import TERMINAL, Job, Mode, OnLost, Source, Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman.text import humanize
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.people import People

ENDED = sorted(TERMINAL - {Status.COMPLETED}, key=str)


@pytest.mark.parametrize("status", ENDED, ids=str)
async def test_a_finished_job_gets_one_successor(
    make: Factory, rt: Runtime, people: People, status: Status
) -> None:
    number = await make.job_in(status)
    retry = await rt.job_control.retry(number, people.olga)
    job = await rt.read_model.job(retry.number)
    assert (retry.outcome, job.status, job.retry_of, job.chain_length) == (
        "created",
        Status.QUEUED,
        number,
        1,
    )
    assert job.idempotency_key == f"retry:{number}:1"
    again = await rt.job_control.retry(number, people.olga)
    assert (again.number, again.outcome) == (retry.number, "deduplicated")
    assert len(await rt.read_model.jobs()) == 2


async def test_a_retry_inherits_the_request_and_no_used_budget(
    make: Factory, rt: Runtime, people: People
) -> None:
    number = await make.failed(
        mode="investigate",
        queue="q",
        priority=7,
        agent="tidy",
        repo="https://host/acme/app",
        title="Title",
        text="Text",
        url="https://host/1",
        payload={"a": 1},
        overrides={"b": 2},
        skills=["s"],
        tags=["t"],
        max_attempts=7,
        max_retries=8,
        on_lost="new_job",
        external_event_id="E1",
        subject_key="card:1",
    )
    old = await rt.read_model.job(number)
    new = await rt.read_model.job((await rt.job_control.retry(number, people.olga)).number)
    inherited = {*job_control.INHERITED} & {field.name for field in fields(Job)}
    for name in inherited | {"title", "url", "request"}:
        assert getattr(new, name) == getattr(old, name), name
    assert (new.agent_request.mode, new.on_lost) == (Mode.INVESTIGATE, OnLost.NEW_JOB)
    assert (new.attempts, new.retry_count, new.run_count, new.last_error) == (0, 0, 0, None)
    assert (new.source, new.invoker_id) == (Source.CLI, "olga")


async def test_a_chain_grows_from_its_root(make: Factory, rt: Runtime) -> None:
    first = await make.canceled()
    number = first
    for length in (1, 2, 3):
        retry = await rt.job_control.retry(number, make.owner)
        await rt.job_control.cancel(retry.number, make.owner)
        job = await rt.read_model.job(retry.number)
        assert (job.retry_of, job.chain_length) == (number, length)
        assert job.idempotency_key == f"retry:{first}:{length}"
        number = retry.number


async def test_a_chain_of_retries_is_limited(
    make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_control, "CHAIN_LIMIT", 1)
    job = await rt.job_control.retry(await make.canceled(), make.owner)
    await rt.job_control.cancel(job.number, make.owner)
    with pytest.raises(
        Refused, match="was already retried 1 times, the maximum; submit a new request"
    ):
        await rt.job_control.retry(job.number, make.owner)


async def _canceled_with_work(make: Factory, rt: Runtime) -> int:
    work = await make.running()
    await rt.checkpoints.save(work.lease, {"step": 1}, b"old bundle")
    await rt.checkpoints.save(work.lease, {"step": 2}, b"\x00" * 3_000_000)
    await rt.job_control.cancel(work.number, make.owner, force=True)
    return work.number


async def test_a_retry_continues_from_the_newest_checkpoint_and_work_bundle(
    make: Factory, rt: Runtime
) -> None:
    number = await _canceled_with_work(make, rt)
    job = await rt.job_control.retry(number, make.owner)
    assert await rt.checkpoints.latest(job.number) == ({"step": 2}, b"\x00" * 3_000_000)
    work = await make.running(job.number)
    await rt.checkpoints.save(work.lease, {"step": 3}, b"mine")
    assert await rt.checkpoints.latest(job.number) == ({"step": 3}, b"mine")
    assert await rt.checkpoints.latest(number) == ({"step": 2}, b"\x00" * 3_000_000)


async def test_a_fresh_retry_has_no_checkpoint(make: Factory, rt: Runtime) -> None:
    number = await _canceled_with_work(make, rt)
    job = await rt.job_control.retry(number, make.owner, fresh=True)
    assert await rt.checkpoints.latest(job.number) == (None, None)


async def test_answers_and_steps_do_not_carry_over(make: Factory, rt: Runtime) -> None:
    asked = await make.asked()
    await make.answer(asked.number, "red")
    work = await make.running(asked.number)
    await rt.checkpoints.begin_step(work.lease, "effect")
    await rt.job_control.cancel(work.number, make.owner, force=True)
    job = await rt.job_control.retry(work.number, make.owner)
    assert await rt.questions.of_job(job.number) == ([], [])
    assert await rt.questions.of_key(job.number, "pick") is None
    assert await rt.checkpoints.steps(job.number) == []


async def test_a_completed_job_is_retried_only_on_request(make: Factory, rt: Runtime) -> None:
    number = await make.completed()
    with pytest.raises(Refused, match="--again"):
        await rt.job_control.retry(number, make.owner)
    assert (await rt.job_control.retry(number, make.owner, again=True)).outcome == "created"


@pytest.mark.parametrize("status", sorted({*Status} - TERMINAL, key=str), ids=str)
async def test_a_job_that_is_not_finished_is_not_retried(
    make: Factory, rt: Runtime, status: Status
) -> None:
    number = await make.job_in(status)
    with pytest.raises(Refused, match=f"D-{number} is {humanize(status)}, not finished"):
        await rt.job_control.retry(number, make.owner)


async def test_a_live_job_for_the_subject_replaces_the_retry(make: Factory, rt: Runtime) -> None:
    number = await make.canceled(subject_key="card:1")
    live = await make.queued(subject_key="card:1")
    with pytest.raises(Refused, match=f"D-{live} is active for the same subject"):
        await rt.job_control.retry(number, make.owner)


async def test_keys_of_retries_are_reserved(make: Factory, rt: Runtime) -> None:
    number = await make.canceled()
    for key in (f"retry:{number}:1", "auto:1"):
        with pytest.raises(UsageError, match="key"):
            invocation(type="noop", key=key)
    assert (await rt.job_control.retry(number, make.owner)).outcome == "created"


async def test_an_operator_can_retry_any_job_and_an_invoker_only_own_jobs(
    make: Factory, rt: Runtime, people: People
) -> None:
    own = await make.queued(actor=people.anna)
    await rt.job_control.cancel(own, make.owner)
    for actor in (people.ben, people.carol, people.erin):
        with pytest.raises(NotPermitted, match="may not retry"):
            await rt.job_control.retry(own, actor)
    assert (await rt.job_control.retry(own, people.anna)).outcome == "created"
    with pytest.raises(NotFound):
        await rt.job_control.retry(999, people.olga)


async def _expired(make: Factory, rt: Runtime, people: People, **fields: Any) -> int:
    work = await make.running(await make.queued(actor=people.anna, **fields))
    item = QUESTION.model_copy(update={"expires_in": 0.000001})
    await rt.asking.ask(work.lease, item)
    await rt.expiry.expire(LeaderTerm())
    return work.number


async def test_a_late_answer_can_be_used_by_a_retry(
    make: Factory, rt: Runtime, people: People
) -> None:
    number = await _expired(make, rt, people)
    with pytest.raises(Refused, match="has no late answer"):
        await rt.job_control.retry(number, people.anna, with_answer=True)
    assert not (await make.answer(number, "2", people.ben)).accepted
    retry = await rt.job_control.retry(number, people.anna, with_answer=True)
    assert (await rt.read_model.job(retry.number)).overrides["answers"] == {"pick": "blue"}


async def test_a_retry_of_a_retry_has_the_answers_of_the_request_only(
    make: Factory, rt: Runtime, people: People
) -> None:
    number = await _expired(make, rt, people, overrides={"answers": {"colour": "red"}, "x": 1})
    await make.answer(number, "2", people.ben)
    late = await rt.job_control.retry(number, people.anna, with_answer=True)
    overrides = (await rt.read_model.job(late.number)).overrides
    assert overrides == {"answers": {"colour": "red", "pick": "blue"}, "x": 1}
    await rt.job_control.cancel(late.number, people.anna)
    plain = await rt.job_control.retry(late.number, people.anna)
    overrides = (await rt.read_model.job(plain.number)).overrides
    assert overrides == {"answers": {"colour": "red"}, "x": 1}


async def test_an_unauthorized_late_answer_is_not_used_by_a_retry(
    make: Factory, rt: Runtime, people: People
) -> None:
    number = await _expired(make, rt, people)
    response = Response(source_event_id="1", text="blue")
    await rt.questions.answer(number, 1, response, people.on("slack", "stranger"))
    with pytest.raises(Refused, match="has no late answer"):
        await rt.job_control.retry(number, people.anna, with_answer=True)


async def test_a_retry_is_run_like_any_other_job(make: Factory, rt: Runtime) -> None:
    job = await rt.job_control.retry(await make.dead(), make.owner)
    work = await make.running(job.number)
    assert (work.retry_of, work.attempts, work.max_attempts) == (1, 0, 1)
    assert await rt.settlement.outcome(work, Done()) is Status.COMPLETED
