"""Handlers that the worker processes of these tests run."""

from __future__ import annotations

from draftsman import Done, Outcome, RunContext
from draftsman.domain.question import Answered


async def ask(ctx: RunContext) -> Outcome:
    """Ask for a colour, and end with it."""
    answer = await ctx.ask("colour", "Which colour?", choices=["red", "blue"])
    assert isinstance(answer, Answered)
    return Done({"colour": answer.value})


async def echo(ctx: RunContext) -> Outcome:
    """End at once with what was asked."""
    return Done({"title": ctx.job.ticket_title})
