"""Calls that type checkers refuse: `make check` reports each comment here that ignores no error.

Nothing imports this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Literal, assert_type

from pydantic import BaseModel

from draftsman import (
    Answered,
    Approve,
    Ask,
    BatchRun,
    BlockingRunContext,
    Failure,
    NoAnswer,
    Person,
    RunContext,
    job,
)


class Report(BaseModel):
    week: int


@job("report:weekly", title="Report of week {week}")
def weekly(
    ctx: BlockingRunContext, week: int | None = None, region: Literal["eu", "us"] = "eu"
) -> Report:
    assert_type(ctx.step("read", lambda _: 1), int)
    return Report(week=week or 1)


@job("count")
async def count(ctx: RunContext, to: int) -> int:
    return await ctx.step("count", lambda _: to)


@job("wrong")  # type: ignore[arg-type]
def context_of_a_coroutine(ctx: RunContext) -> int:
    return 1


@job("index", batch=10)
async def index(runs: Sequence[BatchRun[Report]]) -> list[int | Failure]:
    return [run.payload.week for run in runs]


@job("index:blocking", batch=10)
def index_blocking(runs: Sequence[BatchRun[Report]]) -> list[int]:
    return [run.payload.week for run in runs]


def batches() -> None:
    assert_type(index_blocking.submit(Report(week=1)).result(), int)
    index.submit(Report(week=1))
    index.submit(week=1)  # type: ignore[call-arg]
    index_blocking.submit("x")  # type: ignore[arg-type]


def calls(ctx: BlockingRunContext) -> None:
    assert_type(weekly.submit(week=31, region="eu").result(), Report)
    assert_type(weekly(ctx, 31), Report)
    weekly.submit(week="31")  # type: ignore[arg-type]
    weekly.submit(week=31, region="de")  # type: ignore[arg-type]
    weekly.submit(wek=31)  # type: ignore[call-arg]
    weekly.with_options(key="2026-31").submit(1, "us", 3)  # type: ignore[call-arg]
    weekly.with_options(kee="2026-31")  # type: ignore[call-arg]
    count.submit()  # type: ignore[call-arg]
    number: str = count.submit(3).result()  # type: ignore[assignment]
    count(ctx, 3)  # type: ignore[arg-type,unused-coroutine]
    ctx.ask("color", 3)  # type: ignore[call-overload]
    ctx.ask("color", "Which?", choises=["red"])  # type: ignore[call-overload]
    ctx.approve("go", "Go?", quorum="2")  # type: ignore[arg-type]
    print(number)  # noqa: T201


class Color(Enum):
    RED = "red"


def typed_answers(ctx: BlockingRunContext) -> None:
    assert_type(ctx.ask("note", "A note?"), Answered[str | None] | NoAnswer)
    assert_type(ctx.ask("week", "Which week?", type=int, default=3), Answered[int] | NoAnswer)
    assert_type(ctx.ask("color", "Which color?", type=Color), Answered[Color] | NoAnswer)
    region = ctx.ask("region", "Where?", type=Literal["eu", "us"], critical=True)
    if isinstance(region, Answered):
        assert_type(region.value, Literal["eu", "us"])
    ctx.ask("week", "Which week?", type=31)  # type: ignore[call-overload]
    due, gate = ctx.ask_all(Ask("due", "When?", type=date), Approve("go", "Go?"))
    assert_type(due, Answered[date] | NoAnswer)
    assert_type(gate, Answered[str | None])
    number: str = ctx.ask("number", "How many?", type=Decimal)  # type: ignore[assignment]
    print(number)  # noqa: T201
    who = Ask("who", "Who?", type=Person)
    assert_type(ctx.ask_all(who, who, return_when="first")[0], Answered[Person] | NoAnswer | None)
    ctx.ask_all("who")  # type: ignore[call-overload]


async def asynchronous_calls(ctx: RunContext) -> None:
    job = await count.submit_async(to=3)
    assert_type(await job.result_async(), int)
    assert_type(await count(ctx, 3), int)
    await count.submit_async("3")  # type: ignore[arg-type]
    weekly(ctx)  # type: ignore[arg-type]
