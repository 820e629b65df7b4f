"""Job types that wait without end, each where its isolation runs it."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from draftsman import BlockingRunContext, RunContext, job
from draftsman.handlers.blocking_context import RunInterrupted

INTERRUPTED: Final[list[int]] = []
"""The jobs whose thread was interrupted in a call of its context."""


@job("stop:coroutine")
async def coroutine(ctx: RunContext) -> None:
    """Wait in the event loop."""
    await ctx.event("began")
    await asyncio.Event().wait()


@job("stop:thread")
def thread(ctx: BlockingRunContext) -> None:
    """Call the context now and then."""
    ctx.event("began")
    while not ctx.canceled:
        time.sleep(0.01)
    try:
        ctx.saved()
    except RunInterrupted:
        INTERRUPTED.append(ctx.job.number)
        raise


@job("stop:process", isolation="process")
def process(ctx: BlockingRunContext) -> None:
    """Wait where only a signal can interrupt."""
    ctx.event("began")
    time.sleep(3600)
