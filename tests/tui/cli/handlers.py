"""Handlers that the worker processes of these tests run."""

from __future__ import annotations

from draftsman import Done, Outcome, RunContext


async def echo(ctx: RunContext) -> Outcome:
    """End at once with what was asked."""
    return Done({"title": ctx.job.ticket_title})
