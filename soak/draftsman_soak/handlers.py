"""Handlers of the soak test, configured in `[handlers]`.

Payload: `outside` (a folder), `pause` (maximum seconds between an effect and its record, the window
for a kill), `lookup` (whether an unrecorded effect is looked up first, or requested again under its
invocation id), and the fields that each handler names. A result has `effects` (value by key) and
`answers` (value or outcome by key), which are checked for violations.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from pathlib import Path
from typing import Any, Final

from draftsman import Done, Failure, Outcome, RunContext, Snooze
from draftsman_soak.external_effects import ExternalSystem

MARK: Final = "soak_mark"
"""Event whose fenced write proves that the run owned the job."""
MODULE: Final = __name__
TYPES: Final = (
    "steps",
    "ask",
    "both",
    "defaulted",
    "gate",
    "rest",
    "flaky",
    "doomed",
    "crash",
    "rare",
)
RARE: Final = "rare"
"""The type that only the last worker handles."""


class _Work:
    """Shared state of a handler."""

    def __init__(self, ctx: RunContext) -> None:
        self.ctx = ctx
        self.payload = ctx.job.payload
        self.effects: dict[str, str] = {}
        self.answers: dict[str, str | None] = {}
        self._outside = ExternalSystem(Path(self.payload["outside"]), ctx.job.number)

    async def effect(self, key: str) -> None:
        """Create an external effect in a step."""
        run = self.ctx.job.run

        async def make(invocation: str) -> str:
            value = self._outside.make(run, key, invocation)
            await self.pause()
            return value

        async def find(invocation: str) -> str | None:
            return self._outside.find(invocation)

        self.effects[key] = await self.ctx.step(key, make, find if self.payload["lookup"] else None)
        self._outside.recorded(run, key)

    async def pause(self) -> None:
        """Wait for a fault, then write an event as the owner of the job.

        The write must fail in a run that was suspended here and lost its job.
        """
        await asyncio.sleep(random.uniform(0, self.payload["pause"]))
        await self.ctx.event(MARK)

    def done(self) -> Done:
        """Return the effects and answers as the result."""
        result: dict[str, Any] = {"effects": self.effects, "answers": self.answers}
        return Done(result)


async def steps(ctx: RunContext) -> Outcome:
    """Create `steps` effects, with a checkpoint after each."""
    work = _Work(ctx)
    saved = await ctx.saved() or {"done": []}
    for number in range(work.payload["steps"]):
        await work.effect(f"step-{number}")
        if (key := f"step-{number}") not in saved["done"]:
            saved["done"].append(key)
            await ctx.checkpoint(saved)
        await work.pause()
    return work.done()


async def ask(ctx: RunContext) -> Outcome:
    """Create an effect, then ask and create another effect, `questions` times."""
    work = _Work(ctx)
    await work.effect("before")
    for number in range(work.payload["questions"]):
        key = f"go-{number}"
        answer = await ctx.ask(key, f"Go on, {number}?", choices=["yes", "no", "later"])
        work.answers[key] = getattr(answer, "value", None)
        await work.effect(f"after-{number}")
    return work.done()


async def both(ctx: RunContext) -> Outcome:
    """Ask two questions at once, and create an effect with each answer."""
    work = _Work(ctx)
    await work.effect("before")
    keys = ("left", "right")
    answers = await asyncio.gather(
        *(ctx.ask(key, f"Go {key}?", choices=["yes", "no", "later"]) for key in keys)
    )
    for key, answer in zip(keys, answers, strict=True):
        work.answers[key] = getattr(answer, "value", None)
        await work.effect(f"after-{key}")
    return work.done()


async def defaulted(ctx: RunContext) -> Outcome:
    """Ask a question whose default applies after `expires_in` seconds."""
    work = _Work(ctx)
    seconds = work.payload["expires_in"]
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
    """Ask for `quorum` approvals; continue after a denial."""
    work = _Work(ctx)
    await work.effect("before")
    approval = await ctx.approve(
        "gate",
        "Send it to everyone?",
        action={"effect": work.effects["before"]},
        approvers=["crowd"],
        quorum=work.payload["quorum"],
        on_deny="continue",
    )
    work.answers["gate"] = approval.outcome
    if approval.approved:
        await work.effect("send")
    return work.done()


async def rest(ctx: RunContext) -> Outcome:
    """Sleep, then snooze once."""
    work = _Work(ctx)
    await work.effect("before")
    await ctx.sleep("nap", work.payload["seconds"])
    await work.effect("rested")
    if not await ctx.saved():
        await ctx.checkpoint({"put_off": True})
        return Snooze(work.payload["seconds"])
    return work.done()


async def flaky(ctx: RunContext) -> Outcome:
    """Fail temporarily, `failures` times."""
    work = _Work(ctx)
    await work.effect("before")
    if ctx.job.retry_count < work.payload["failures"]:
        raise Failure("the other side is busy", declared="TRANSIENT_APP")
    await work.effect("after")
    return work.done()


async def doomed(ctx: RunContext) -> Outcome:
    """Fail until all retries are used; complete when retried by a person."""
    work = _Work(ctx)
    await work.effect("before")
    if ctx.job.retry_of is None:
        raise Failure("the other side is down", declared="TRANSIENT_APP")
    return work.done()


async def crash(ctx: RunContext) -> Outcome:
    """Kill the worker in the first `crashes` runs, with all other runs of its process."""
    work = _Work(ctx)
    await work.effect("before")
    if ctx.job.run <= work.payload["crashes"]:
        os.kill(os.getpid(), signal.SIGKILL)
    await work.effect("after")
    return work.done()


async def rare(ctx: RunContext) -> Outcome:
    """Create an effect, of a type that no other worker handles."""
    work = _Work(ctx)
    await work.effect("only")
    return work.done()
