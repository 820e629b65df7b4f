"""Calls that type checkers refuse: `make check` reports each comment here that ignores no error.

Nothing imports this module.
"""

from __future__ import annotations

from typing import Literal, assert_type

from pydantic import BaseModel

from draftsman import BlockingRunContext, RunContext, job


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
    ctx.ask("color", 3)  # type: ignore[arg-type]
    print(number)  # noqa: T201


async def asynchronous_calls(ctx: RunContext) -> None:
    job = await count.submit_async(to=3)
    assert_type(await job.result_async(), int)
    assert_type(await count(ctx, 3), int)
    await count.submit_async("3")  # type: ignore[arg-type]
    weekly(ctx)  # type: ignore[arg-type]
