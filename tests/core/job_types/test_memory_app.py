"""The fixture that runs declared jobs in memory."""

from __future__ import annotations

from datetime import timedelta

import pytest

from draftsman import Answered, BlockingRunContext, Cancel, Failure, RunContext, job
from draftsman.job_types import declaration
from draftsman.jobs.job import Status
from draftsman.testing.memory_app import MemoryApp


@pytest.fixture(autouse=True)
def _own_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declaration, "declared_types", {})


def test_jobs_run_when_the_test_drains_them(draftsman_app: MemoryApp) -> None:
    @job("count")
    def count(ctx: BlockingRunContext, text: str) -> int:
        return len(text)

    @job("total", title="Count {texts}")
    def total(ctx: BlockingRunContext, texts: list[str]) -> int:
        jobs = [ctx.spawn(text, count.request(text)) for text in texts]
        ctx.ask("go", "Count?", choices=["yes", "no"])
        results = [each.result or {} for each in ctx.gather(jobs)]
        return sum(result["value"] for result in results)

    submitted = total.submit(["a", "bb"])
    assert draftsman_app.submitted(total) == [{"texts": ["a", "bb"]}]
    draftsman_app.answers["go"] = "yes"
    assert submitted.result() == 3
    assert draftsman_app.asked() == ["Count?"]
    assert draftsman_app.submitted("count") == [{"text": "a"}, {"text": "bb"}]
    assert [each.status for each in draftsman_app.jobs] == [Status.COMPLETED] * 3
    assert draftsman_app.jobs[0].name == "D-1"


def test_delayed_jobs_wait_for_the_clock(draftsman_app: MemoryApp) -> None:
    @job("later")
    def later(ctx: BlockingRunContext, n: int) -> None:
        ctx.log(f"at {n}")

    later.with_options(delay=3600, key="one").submit(1)
    again = later.with_options(delay=3600, key="one").submit(1)
    assert again.outcome == "deduplicated"
    later.with_options(run_at=draftsman_app.clock.now + timedelta(days=1)).submit(2)
    assert draftsman_app.drain() == []
    with pytest.raises(TimeoutError, match="D-1 is due at 2030-01-01 01:00:00"):
        again.result()
    draftsman_app.advance(3600)
    (ran,) = draftsman_app.drain()
    assert ran.ran is not None
    assert ran.ran.log == "at 1\n"
    draftsman_app.advance(86_400)
    assert [each.payload for each in draftsman_app.drain()] == [{"n": 2}]


async def test_errors_and_cancellations_are_ends_of_their_jobs(draftsman_app: MemoryApp) -> None:
    @job("ends")
    async def ends(ctx: RunContext, way: str) -> Cancel | None:
        if way == "cancel":
            return Cancel("not needed")
        raise ValueError(way)

    @job("asks")
    async def asks(ctx: RunContext) -> bool:
        answer = await ctx.ask("x", "Which?", choices=["a", "b"])
        return isinstance(answer, Answered)

    ends.submit("cancel")
    failing = ends.submit("wrong")
    await draftsman_app.drain_async()
    assert [(each.status, each.last_error) for each in draftsman_app.jobs] == [
        (Status.CANCELED, "not needed"),
        (Status.FAILED, "ValueError: wrong"),
    ]
    with pytest.raises(Failure, match="D-2 is failed: ValueError: wrong"):
        await failing.result_async()
    asks.submit()
    with pytest.raises(AssertionError, match="'x'"):
        await draftsman_app.drain_async()
