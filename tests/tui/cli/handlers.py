"""Handlers that the worker processes of these tests run."""

from __future__ import annotations

from draftsman import Done, Failure, Outcome, RunContext
from draftsman.questions.question import Answered


async def ask(ctx: RunContext) -> Outcome:
    """Ask for a color, and return it."""
    answer = await ctx.ask("color", "Which color?", choices=["red", "blue"])
    assert isinstance(answer, Answered)
    return Done({"color": answer.value})


async def echo(ctx: RunContext) -> Outcome:
    """Complete with the title of the request."""
    return Done({"title": ctx.job.title})


async def fail(_: RunContext) -> Outcome:
    """Fail for good."""
    raise Failure("no echo", declared="PERMANENT")
