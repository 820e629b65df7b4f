"""A handler for a steady load: of ten jobs two ask, one fails permanently and one fails once."""

from __future__ import annotations

from draftsman import Done, RunContext
from draftsman.errors import Failure
from draftsman.jobs.runs.outcome import Outcome

LINES = 50


async def handle(ctx: RunContext) -> Outcome:
    """Log, save, ask or fail, by the number in the payload."""
    kind = ctx.job.payload["n"] % 10

    async def effect(invocation: str) -> str:
        return invocation

    for line in range(LINES):
        ctx.log(f"line {line} of {ctx.job.name}, which does what jobs do")
    await ctx.step("effect", effect)
    await ctx.checkpoint({"at": kind})
    if kind == 1:
        raise Failure("for good", declared="PERMANENT")
    if kind == 2 and ctx.job.run == 1:
        raise Failure("this once", http_status=503, retry_after=0.1)
    if kind in (3, 4):
        answer = await ctx.ask("go", "Go on?", choices=["yes", "no"])
        return Done({"answer": answer.outcome})
    return Done({"kind": kind})
