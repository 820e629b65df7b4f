"""A declared job type that does nothing, in the event loop, a thread or a process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.peers.peer import Probe
from draftsman import BlockingRunContext, ClaimedJob, RunContext, job, middleware
from draftsman.handlers.registry import Handler
from draftsman.job_types.process_runs import ProcessRuns


@job("loop")
async def loop(ctx: RunContext, i: int) -> None:
    """Run in the event loop of the worker."""


@job("thread")
def thread(ctx: BlockingRunContext, i: int) -> None:
    """Run in a thread."""


@job("process", isolation="process")
def process(ctx: BlockingRunContext, i: int) -> None:
    """Run in a process of its own."""


@asynccontextmanager
async def handlers(function: str, probe: Probe) -> AsyncIterator[dict[str, Handler]]:
    """Provide the handler of `noop`, whose starts the worker itself counts."""

    @middleware
    async def counted(job: ClaimedJob) -> AsyncIterator[None]:
        probe.hit(job.number)
        yield

    declared = {"loop": loop, "thread": thread, "process": process}[function]
    async with ProcessRuns([__name__]) as processes:
        yield {"noop": declared.handler(processes)}
