"""draftsman: the shipped worker with heartbeat, listener and leader, with default settings."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from bench import declared_types
from bench.peers.peer import About, Probe
from draftsman.database import migrate
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Source
from draftsman.jobs.requests.payload_batch import PayloadBatch
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.people.actor import Actor
from draftsman.runtime import open_runtime
from draftsman.settings import settings_model

ME = Actor(Source.CLI, "bench", "bench", owner=True)


class Queue:
    """Handlers of two types: `noop` does nothing, `ask` asks first."""

    ABOUT = About(
        distribution="draftsman",
        default={"slots": 10},
        fast={"slots": 100},
        functions=("loop", "thread", "process"),
        unfinished="SELECT EXISTS (SELECT FROM draftsman.jobs"
        " WHERE status IN ('queued', 'claimed', 'running', 'resumed'))",
    )

    def __init__(self, url: str, settings: dict[str, Any]) -> None:
        self.url = url
        self.settings = settings
        values = {"database_url": url, "limits": settings.get("limits", {})}
        self.opening = open_runtime(settings_model().model_validate(values))
        self.fields = {"repo": settings["repo"]} if "repo" in settings else {}
        self.persons = [
            Actor(Source.CLI, f"bench-{number}", f"bench-{number}", owner=True)
            for number in range(settings.get("persons", 1))
        ]

    async def prepare(self) -> None:
        await migrate.migrate(self.url)

    async def open(self) -> None:
        self.stack = AsyncExitStack()
        self.submissions = (await self.stack.enter_async_context(self.opening)).submissions

    async def submit(self, number: int) -> None:
        await self.submissions.submit(
            invocation(type="noop", payload={"i": number}, **self.fields), ME
        )

    async def submit_many(self, numbers: range) -> None:
        if (persons := len(self.persons)) == 1:
            shared = invocation(type="noop", payload={})
            payloads = PayloadBatch.of({"i": number} for number in numbers)
            await self.submissions.submit_payloads(shared, payloads, ME)
            return
        requests = [invocation(type="noop", payload={"i": number}) for number in numbers]
        actors = [self.persons[number % persons] for number in numbers]
        await self.submissions.submit_each(list(zip(requests, actors, strict=True)))

    async def work(self, probe: Probe) -> None:
        async def noop(ctx: RunContext) -> Outcome:
            probe.hit(ctx.job.number)
            return Done({})

        async def ask(ctx: RunContext) -> Outcome:
            if ctx.job.run > 1:
                probe.hit(ctx.job.number)
            await ctx.ask("pick", "Which one?", choices=["red", "blue"])
            return Done({})

        handlers = {"noop": noop, "ask": ask}
        async with AsyncExitStack() as stack:
            if function := self.settings.get("function"):
                handlers |= await stack.enter_async_context(
                    declared_types.handlers(function, probe)
                )
            runtime = await stack.enter_async_context(self.opening)
            crew = runtime.worker_process(handlers, slots=self.settings["slots"])
            worker = crew.worker
            probe.counters = lambda: {
                "settlements": worker.settlements,
                "skipped": worker.skipped_settlements,
            }
            running = asyncio.create_task(crew.run())
            try:
                await asyncio.shield(running)
            except asyncio.CancelledError:
                crew.stop.set()
                await running
