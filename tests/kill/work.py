"""Handlers that use every method of a run, and an agent that sends every message."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final
from uuid import uuid4

from draftsman import Done, RunContext
from draftsman.agent_runs.repository import assign
from draftsman.costs.budgets import CallEstimate
from draftsman.errors import Failure
from draftsman.handlers.context import worker_run
from draftsman.ids import new_id
from draftsman.jobs.runs.outcome import Outcome, Snooze
from draftsman.jobs.runs.quota import Quota, QuotaLimit
from draftsman.repos.repo_catalog import Repo

BUNDLE: Final = b"work in progress"
MEMBERS: Final = ("first", "second")
"""Keys of the jobs that a job spawns."""
RUNNING: Final = set[int]()
"""Jobs of the type with a limit that run in this process."""
HALFWAY: Final = "It is half done"
"""The notice in the middle of a job, sent once."""


async def life(ctx: RunContext) -> Outcome:
    """Call every method once."""
    effects = Effects(ctx)
    ctx.log("here we go")
    await worker_run(ctx).saved_work()
    first = await ctx.step("first", effects.make("first"), effects.find)
    await ctx.checkpoint({"first": first}, BUNDLE)
    assert await worker_run(ctx).spend(Quota.EVENTS, 1, QuotaLimit(1000))
    await ctx.event("halfway", {"first": first})
    await ctx.artifact("notes.md", first.encode())
    await ctx.usage({"input_tokens": 1})
    await worker_run(ctx).describe({"agent": "life"})
    call = new_id()
    estimate = CallEstimate("m", 1, 1, 0.0)
    await worker_run(ctx).reserve(call, estimate, None)
    await worker_run(ctx).release(call)
    await worker_run(ctx).assign_agent("tidy")
    await worker_run(ctx).pull_request("https://git.example/acme/pay/pull/7")
    await ctx.notify(HALFWAY, key="halfway")
    await assign(worker_run(ctx), Repo(None, "", "acme", "pay", "https://example.org/acme/pay"))
    answer = await ctx.ask("go", "Go on?", choices=["yes", "no"])
    gate = await ctx.approve("gate", "Really?", action={"first": first})
    silence = await ctx.ask(
        "silence", "Anybody?", choices=["a", "b"], expires_in=0.01, on_expire="default", default="b"
    )
    await ctx.sleep("nap", 0.05)
    # A run that was killed between an effect and its record still has to finish the step.
    snoozed = effects.made("snoozed")
    failed = effects.made("failed")
    await ctx.step("snoozed", effects.make("snoozed"), effects.find)
    if not snoozed:
        return Snooze(0.05)
    await ctx.step("failed", effects.make("failed"), effects.find)
    if not failed:
        raise Failure("busy", http_status=503)
    last = await ctx.step("last", effects.make("last"), effects.find)
    answers = [answer.outcome, gate.outcome, silence.outcome, getattr(silence, "value", None)]
    return Done({"first": first, "last": last, "said": answers})


async def given(ctx: RunContext) -> Outcome:
    """Ask a question with an answer in the request."""
    answer = await ctx.ask("colour", "Which?", choices=["red", "blue"], never_expires=True)
    return Done({"said": getattr(answer, "value", None)})


async def lost(ctx: RunContext) -> Outcome:
    """Run until the worker dies; the next job ends at once."""
    if ctx.job.retry_of is None:
        await asyncio.Event().wait()
    return Done({})


async def family(ctx: RunContext) -> Outcome:
    """Spawn two jobs and gather their results."""
    jobs = [await ctx.spawn(name, "kill:member", payload={"name": name}) for name in MEMBERS]
    children = await ctx.gather(jobs)
    return Done({"names": [(child.result or {})["name"] for child in children]})


async def member(ctx: RunContext) -> Outcome:
    """Return the name in the payload, and the jobs that this job waited for."""
    parents = [parent.number for parent in await ctx.parents()]
    return Done({"name": ctx.job.payload.get("name"), "parents": parents})


async def fails(ctx: RunContext) -> Outcome:
    """Fail for good."""
    raise Failure("no such thing", declared="PERMANENT")


async def limited(ctx: RunContext) -> Outcome:
    """Return how many jobs of this type ran in this process at a time, at most."""
    RUNNING.add(ctx.job.number)
    try:
        together = len(RUNNING)
        await ctx.checkpoint({}, BUNDLE)
        return Done({"together": max(together, len(RUNNING))})
    finally:
        RUNNING.discard(ctx.job.number)


class Effects:
    """Effects of a job outside of the database: a line each, with the invocation's id."""

    def __init__(self, ctx: RunContext) -> None:
        self._path = Path(ctx.job.payload["folder"]) / str(ctx.job.number)

    def make(self, key: str):  # type: ignore[no-untyped-def]
        """Return the effect of a step."""

        def effect(invocation: str) -> str:
            value = uuid4().hex
            append(self._path, f"{key} {invocation} {value}\n")
            return value

        return effect

    def find(self, invocation: str) -> str | None:
        """Return the result of an earlier effect."""
        lines = (line.split() for line in self._lines())
        return next((value for _, made_by, value in lines if made_by == invocation), None)

    def made(self, key: str) -> bool:
        """Return whether the effect of a step was made."""
        return any(line.startswith(f"{key} ") for line in self._lines())

    def _lines(self) -> list[str]:
        return self._path.read_text().splitlines() if self._path.exists() else []


def append(path: Path, line: str) -> None:
    """Append a line atomically: a single write, which no kill can split."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


HANDLERS: Final = {
    f"kill:{handler.__name__}": f"tests.kill.work:{handler.__name__}"
    for handler in (life, given, lost, family, member, fails, limited)
}
