"""The fixtures that run declared jobs in memory, and by a worker: both do the same."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from draftsman import (
    Answered,
    Approve,
    Ask,
    BlockingRunContext,
    Cancel,
    Every,
    Failure,
    RunContext,
    job,
)
from draftsman.job_types import declaration
from draftsman.jobs.job import Status
from draftsman.testing import Deny, DrainedApp, WorkerApp

pytestmark = pytest.mark.machine_clock("an app sets the clock of its database itself")
FAILED = {Status.FAILED, Status.DEAD_LETTER}


@pytest.fixture(autouse=True)
def _own_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declaration, "declared_types", {})


@pytest.fixture(params=["draftsman_app", "draftsman_worker"])
def app(request: pytest.FixtureRequest) -> DrainedApp:
    """Provide each app."""
    provided: DrainedApp = request.getfixturevalue(request.param)
    return provided


def test_jobs_run_when_the_test_drains_them(app: DrainedApp) -> None:
    @job("count", queue="counts")
    def count(ctx: BlockingRunContext, text: str) -> int:
        ctx.log(text)
        return ctx.step("length", lambda _: len(text))

    @job("total", title="Count {texts}")
    def total(ctx: BlockingRunContext, texts: list[str]) -> int:
        jobs = [ctx.spawn(text, count.request(text)) for text in texts]
        ctx.ask("go", "Count?", choices=["yes", "no"])
        results = [each.result or {} for each in ctx.gather(jobs)]
        return sum(result["value"] for result in results)

    submitted = total.submit(["a", "bb"])
    assert app.submitted(total) == [{"texts": ["a", "bb"]}]
    assert (app.jobs[0].status, app.jobs[0].title) == (Status.QUEUED, "Count ['a', 'bb']")
    app.answers["go"] = "yes"
    assert submitted.result() == 3
    assert app.asked() == ["Count?"]
    assert app.submitted("count") == [{"text": "a"}, {"text": "bb"}]
    assert [each.status for each in app.jobs] == [Status.COMPLETED] * 3
    assert [each.name for each in app.jobs] == ["D-1", "D-2", "D-3"]
    assert [(each.steps, each.log) for each in app.jobs[1:]] == [
        ({"length": 1}, "a\n"),
        ({"length": 2}, "bb\n"),
    ]


def test_delayed_jobs_wait_for_the_clock(app: DrainedApp) -> None:
    @job("later")
    def later(ctx: BlockingRunContext, n: int) -> None:
        ctx.log(f"at {n}")

    later.with_options(delay=3600, key="one").submit(1)
    again = later.with_options(delay=3600, key="one").submit(1)
    assert again.outcome == "deduplicated"
    later.with_options(run_at=app.now + timedelta(days=1)).submit(2)
    assert app.drain() == []
    with pytest.raises(TimeoutError, match=r"D-1 is due at .*; advance the clock"):
        again.result()
    app.advance(3601)
    (ran,) = app.drain()
    assert ran.log == "at 1\n"
    app.advance(86_400)
    assert [each.payload for each in app.drain()] == [{"n": 2}]


def test_drain_moves_the_clock_over_sleeps_and_silence(app: DrainedApp) -> None:
    @job("patient")
    def patient(ctx: BlockingRunContext) -> list[str]:
        ctx.sleep("week", 7 * 86_400)
        answer = ctx.ask("go", "Go?", choices=["yes"], expires_in=86_400, on_expire="continue")
        return [type(answer).__name__]

    before = app.now
    app.answers["go"] = None
    assert patient.submit().result() == ["NoAnswer"]
    assert app.now - before >= timedelta(days=7)


@pytest.mark.parametrize("answer", [True, Deny("not now")])
def test_approvals_are_decided(app: DrainedApp, answer: bool | Deny) -> None:
    @job("decides")
    def decides(ctx: BlockingRunContext) -> list[str]:
        gate = Approve("go", "Go?", quorum=2, on_deny="continue")
        found = ctx.ask_all(gate, Ask("note", "A note?", freeform=True))
        return [type(each).__name__ for each in found]

    app.answers |= {"go": answer, "note": "hello"}
    assert decides.submit().result() == ["Answered", "Answered"]
    outcomes = [(each.key, (each.resolution or {})["outcome"]) for each in app.jobs[0].questions]
    go = "approved" if answer is True else "denied"
    assert outcomes == [("go", go), ("note", "answered")]


async def test_errors_and_cancellations_are_ends_of_their_jobs(app: DrainedApp) -> None:
    @job("ends", max_attempts=2)
    async def ends(ctx: RunContext, way: str) -> Cancel | None:
        if way == "cancel":
            return Cancel("not needed")
        await ctx.ask("sure", "Sure?", choices=["yes"])
        raise ValueError(way)

    @job("asks")
    async def asks(ctx: RunContext) -> bool:
        answer = await ctx.ask("x", "Which?", choices=["a", "b"])
        return isinstance(answer, Answered)

    app.answers["sure"] = "yes"
    await ends.submit_async("cancel")
    failing = ends.submit("wrong")
    await app.drain_async()
    canceled, failed = app.jobs
    assert (canceled.status, canceled.last_error) == (Status.CANCELED, "not needed")
    assert failed.status in FAILED
    assert failed.last_error == "ValueError: wrong"
    assert app.asked() == ["Sure?"]
    with pytest.raises(Failure, match=r"D-2 is \w+: ValueError: wrong"):
        await failing.result_async()
    asks.submit()
    with pytest.raises(AssertionError, match=r"the handler asked 'x' \(Which\?\)"):
        await app.drain_async()
    app.answers["x"] = "c"
    with pytest.raises(AssertionError, match=r"the answer to 'x' does not fit: D-\d/1: 'c' is not"):
        await app.drain_async()


def test_a_type_that_nothing_declares_fails_the_test(
    app: DrainedApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    @job("gone")
    def gone(ctx: BlockingRunContext) -> None: ...

    gone.submit()
    monkeypatch.setattr(declaration, "declared_types", {})
    with pytest.raises(AssertionError, match="no imported module declares the type gone"):
        app.drain()


def test_limits_and_schedules_are_those_of_a_worker(draftsman_worker: WorkerApp) -> None:
    tried: list[datetime] = []

    @job("fails", max_retries=1, max_attempts=9, base_delay=600, schedule=Every("90m"))
    def fails(ctx: BlockingRunContext) -> None:
        tried.append(draftsman_worker.now)
        raise Failure("down", code="down", declared="TRANSIENT")

    draftsman_worker.drain()
    assert tried == []
    draftsman_worker.advance(5_401)
    draftsman_worker.drain()
    assert [job.status in FAILED for job in draftsman_worker.jobs] == [True]
    assert len(tried) == 2


def test_a_job_belongs_to_the_transaction_that_submits_it(
    draftsman_worker: WorkerApp, draftsman_database_url: str
) -> None:
    @job("one")
    def one(ctx: BlockingRunContext) -> int:
        return 1

    with psycopg.connect(draftsman_database_url) as connection:
        submitting = one.with_options(connection=connection)
        submitting.submit()
        connection.rollback()
        assert draftsman_worker.jobs == []
        kept = submitting.submit()
        connection.commit()
    assert (kept.name, kept.result()) == ("D-2", 1)


class TestPeople:
    @pytest.fixture
    def draftsman_tables(self) -> dict[str, Any]:
        return {"people": {name: {"roles": ["approver"]} for name in ("anna", "ben")}}

    def test_questions_are_answered_by_those_who_may(self, draftsman_worker: WorkerApp) -> None:
        @job("decides")
        def decides(ctx: BlockingRunContext) -> None:
            ctx.approve("go", "Go?", approvers=["anna", "ben"], quorum=2)

        draftsman_worker.answers["go"] = True
        decides.submit().result()
        (question,) = draftsman_worker.jobs[0].questions
        assert (question.resolution or {})["by"] == ["anna", "ben"]
