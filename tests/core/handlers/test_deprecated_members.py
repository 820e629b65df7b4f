"""Members of RunContext that are deprecated: they work, and warn."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.domain.reserved_names import Owner
from draftsman.domain.retries.retry_policy import RetryPolicy
from draftsman.errors import UsageError
from draftsman.handlers.context import RunContext, worker_run
from draftsman.runtime import Runtime
from tests.factories import Factory

MOVED = {
    "answers": {},
    "deadline": 60,
    "has_patch": False,
    "limits": RetryPolicy(),
    "saved_work": (None, None),
    "steps": {},
    "stopping": None,
}
"""Deprecated members that only read, with their values in a new run."""


@pytest.mark.parametrize("name", MOVED)
async def test_a_deprecated_member_works_and_warns(rt: Runtime, make: Factory, name: str) -> None:
    ctx = RunContext(await make.running(), rt, 60)
    with pytest.warns(DeprecationWarning, match=rf"use worker_run\(ctx\).{name}$"):
        member = getattr(ctx, name)
    value = await member() if callable(member) else member
    assert value == MOVED[name]


@pytest.mark.filterwarnings("ignore:ctx.*worker_run:DeprecationWarning")
async def test_deprecated_steps_belong_to_the_handler(rt: Runtime, make: Factory) -> None:
    ctx: Any = RunContext(await make.running(), rt, 60)
    step = await ctx.note_step("build")
    await ctx.finish_step("build", 7)
    assert step.status == "pending"
    assert {key: step.result for key, step in (await ctx.steps()).items()} == {"build": 7}
    assert await worker_run(ctx).steps(Owner.WORKER) == {}
    with pytest.raises(UsageError, match="reserved"):
        await ctx.note_step("agent:push:1")


async def test_the_old_spelling_of_canceled_warns(rt: Runtime, make: Factory) -> None:
    ctx: Any = RunContext(await make.running(), rt, 60)
    with pytest.warns(DeprecationWarning, match="use ctx.canceled"):
        assert not ctx.cancelled
    worker_run(ctx).stopping = "shutdown"
    assert ctx.canceled


async def test_an_unknown_member_is_an_attribute_error(rt: Runtime, make: Factory) -> None:
    ctx: Any = RunContext(await make.running(), rt, 60)
    with pytest.raises(AttributeError, match="'RunContext' object has no attribute 'anwsers'"):
        await ctx.anwsers()
