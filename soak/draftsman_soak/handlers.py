"""The handlers that the soak's workers run: ordinary ones, configured in `[handlers]`.

The payload says what to do: `outside` (a folder), `pause` (seconds at most between an effect and
its record, where a kill must hit), `lookup` (whether an effect that is not on record is looked up
first, or asked for again under its invocation id), and what each handler names below. A result
holds `effects` (value by key) and `answers` (value or outcome by key), for the verdict to compare.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any, Final

from draftsman import Done, Failure, Outcome, RunContext, Snooze
from draftsman_soak.external_effects import ExternalSystem

MARK: Final = "soak_mark"
"""The event that proves, by its fencing, that this run owned its job then."""
MODULE: Final = __name__
TYPES: Final = ("steps", "ask", "defaulted", "gate", "rest", "flaky", "doomed")


class _Work:
    """What the handlers have in common."""

    def __init__(self, ctx: RunContext) -> None:
        self.ctx = ctx
        self.asked = ctx.job.payload
        self.effects: dict[str, str] = {}
        self.answers: dict[str, str | None] = {}
        self._outside = ExternalSystem(Path(self.asked["outside"]), ctx.job.number)

    async def effect(self, key: str) -> None:
        """Make an effect outside, as a step."""
        run = self.ctx.job.run

        async def make(invocation: str) -> str:
            value = self._outside.make(run, key, invocation)
            await self.pause()
            return value

        async def find(invocation: str) -> str | None:
            return self._outside.find(invocation)

        self.effects[key] = await self.ctx.step(key, make, find if self.asked["lookup"] else None)
        self._outside.recorded(run, key)

    async def pause(self) -> None:
        """Wait a little, so that something can happen, and show who owns the job afterwards.

        A run that was suspended here, and lost its job, must not get this write through.
        """
        await asyncio.sleep(random.uniform(0, self.asked["pause"]))
        await self.ctx.event(MARK)

    def done(self) -> Done:
        """Return what came of it."""
        found: dict[str, Any] = {"effects": self.effects, "answers": self.answers}
        return Done(found)


async def steps(ctx: RunContext) -> Outcome:
    """Make `steps` effects, with a checkpoint after each."""
    work = _Work(ctx)
    saved = await ctx.saved() or {"done": []}
    for place in range(work.asked["steps"]):
        await work.effect(f"step-{place}")
        if (key := f"step-{place}") not in saved["done"]:
            saved["done"].append(key)
            await ctx.checkpoint(saved)
        await work.pause()
    return work.done()


async def ask(ctx: RunContext) -> Outcome:
    """Make an effect, ask, and make another, `questions` times."""
    work = _Work(ctx)
    await work.effect("before")
    for place in range(work.asked["questions"]):
        key = f"go-{place}"
        answer = await ctx.ask(key, f"Go on, {place}?", choices=["yes", "no", "later"])
        work.answers[key] = getattr(answer, "value", None)
        await work.effect(f"after-{place}")
    return work.done()


async def defaulted(ctx: RunContext) -> Outcome:
    """Ask what decides itself after `expires_in` seconds."""
    work = _Work(ctx)
    seconds = work.asked["expires_in"]
    answer = await ctx.ask(
        "maybe",
        "Really?",
        choices=["yes", "no"],
        expires_in=seconds,
        on_expire="default",
        default="no",
    )
    work.answers["maybe"] = getattr(answer, "value", None)
    await work.effect("after")
    return work.done()


async def gate(ctx: RunContext) -> Outcome:
    """Ask for `quorum` approvals; a denial goes on, too."""
    work = _Work(ctx)
    await work.effect("before")
    decided = await ctx.approve(
        "gate",
        "Send it to everyone?",
        action={"effect": work.effects["before"]},
        approvers=["crowd"],
        quorum=work.asked["quorum"],
        on_deny="continue",
    )
    work.answers["gate"] = decided.outcome
    if decided.approved:
        await work.effect("send")
    return work.done()


async def rest(ctx: RunContext) -> Outcome:
    """Sleep, then put itself off once."""
    work = _Work(ctx)
    await work.effect("before")
    await ctx.sleep("nap", work.asked["seconds"])
    await work.effect("rested")
    if not await ctx.saved():
        await ctx.checkpoint({"put_off": True})
        return Snooze(work.asked["seconds"])
    return work.done()


async def flaky(ctx: RunContext) -> Outcome:
    """Fail in a way that passes, `failures` times."""
    work = _Work(ctx)
    await work.effect("before")
    if ctx.job.retry_count < work.asked["failures"]:
        raise Failure("the other side is busy", declared="TRANSIENT_APP")
    await work.effect("after")
    return work.done()


async def doomed(ctx: RunContext) -> Outcome:
    """Fail until the budget is spent; when a person has it tried again, complete."""
    work = _Work(ctx)
    await work.effect("before")
    if ctx.job.retry_of is None:
        raise Failure("the other side is down", declared="TRANSIENT_APP")
    return work.done()
