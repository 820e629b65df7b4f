"""The handler whose workers are killed: a step, a question, a step, each with an effect outside."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path
from uuid import uuid4

from draftsman import Done, RunContext
from draftsman.domain.outcome import Outcome

PAUSE = 0.1
"""Seconds at most between an effect and its record: the moment that a kill must hit."""


async def handle(ctx: RunContext) -> Outcome:
    """Make two effects that can be looked up, and ask in between."""
    effects = Path(ctx.job.payload["folder"]) / str(ctx.job.number)

    async def effect(key: str, invocation: str) -> str:
        value = uuid4().hex
        _append(effects, f"{key} {invocation} {value}\n")
        await asyncio.sleep(random.uniform(0, PAUSE))
        return value

    async def lookup(invocation: str) -> str | None:
        lines = effects.read_text().splitlines() if effects.exists() else []
        made = [line.split() for line in lines]
        return next((value for _, made_by, value in made if made_by == invocation), None)

    first = await ctx.step("first", lambda invocation: effect("first", invocation), lookup)
    await ctx.checkpoint({"first": first})
    answer = await ctx.ask("go", "Go on?", choices=["yes", "no"])
    second = await ctx.step("second", lambda invocation: effect("second", invocation), lookup)
    return Done({"first": first, "answer": answer.outcome, "second": second})


def _append(path: Path, line: str) -> None:
    """Write a line whole or not at all: one write, which no kill can cut."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)
