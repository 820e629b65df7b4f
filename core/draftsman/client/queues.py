"""Methods of the client about queues, limits and budgets."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from draftsman.client.requests import JobName
from draftsman.costs.budgets import BudgetUse, Cost
from draftsman.errors import UsageError
from draftsman.ids import parse_job
from draftsman.jobs.details.wait_reason import WaitReason
from draftsman.jobs.job import Job, Source
from draftsman.jobs.requests.service.submissions import SubmittedJob
from draftsman.queues.queue_models import QueuedJob, QueueSummary
from draftsman.queues.service.queues import Place
from draftsman.queues.usage_limits import LimitUse
from draftsman.runtime import Runtime


class QueueClient:
    """The part of `Client` that concerns more than a job."""

    def __init__(self, runtime: Runtime) -> None:
        self._rt = runtime

    async def queues(self) -> list[QueueSummary]:
        """Return the queues that have jobs, a pause, a reservation or a live worker."""
        return await self._rt.queues.all()

    async def limits(self) -> list[LimitUse]:
        """Return each configured limit, and each value that has a limit in use, by name."""
        return await self._rt.queues.limits()

    async def budgets(self) -> list[BudgetUse]:
        """Return the budgets with their use today, and those of unfinished jobs, by name."""
        return await self._rt.budgets.uses()

    async def costs(self, by: str = "repo", since: float = 7 * 86_400) -> list[Cost]:
        """Return the costs of the last days by repo, person, agent, model or day.

        `since` is in seconds. Raises UsageError.
        """
        return await self._rt.budgets.costs(by, since)

    async def pause_queue(
        self, queue: str, reason: str, *, type: str | None = None, unchecked: bool = False
    ) -> None:
        """Pause a queue, or a type in it; raises Refused if it is paused.

        Raises NotFound or UsageError if the queue or the type is not known, unless `unchecked`.
        """
        actor = await self._rt.actor(Source.API)
        if not unchecked:
            await self._rt.request_checks.require_queue(queue, type, actor)
        await self._rt.queues.pause(queue, actor, reason, type)

    async def resume_queue(self, queue: str, *, type: str | None = None) -> None:
        """End a pause; raises Refused if the queue or type is not paused."""
        await self._rt.queues.resume(queue, await self._rt.actor(Source.API), type)

    async def drain_queue(
        self,
        queue: str,
        reason: str = "draining",
        *,
        type: str | None = None,
        timeout: float | None = None,
        unchecked: bool = False,
    ) -> None:
        """Pause a queue, or a type in it, and return once none of its jobs runs.

        Raises TimeoutError after `timeout` seconds; the queue stays paused. Unknown names are
        refused as by `pause_queue`.
        """
        actor = await self._rt.actor(Source.API)
        if not unchecked:
            await self._rt.request_checks.require_queue(queue, type, actor)
        async with (
            asyncio.timeout(timeout),
            aclosing(self._rt.queues.drain(queue, actor, reason, type)) as progress,
        ):
            async for _ in progress:
                pass

    async def release_queue(self, queue: str) -> None:
        """End the reservation of a queue; raises Refused if it is not reserved."""
        await self._rt.queues.release_reservation(queue, await self._rt.actor(Source.API))

    async def move(self, job: JobName, place: Place, anchor: JobName | None = None) -> None:
        """Move a queued job to the `top` or `bottom`, or `before` or `after` another job.

        Raises NotFound, and Refused for a job that is not queued or in another queue.
        """
        number = await self._number(job)
        other = None if anchor is None else await self._number(anchor)
        if (other is None) != (place in ("top", "bottom")):
            raise UsageError("before and after require an anchor; top and bottom have none")
        await self._rt.queues.move(number, place, await self._rt.actor(Source.API), other)

    async def prioritize(self, job: JobName, priority: int) -> None:
        """Change the priority of a waiting job; raises NotFound, UsageError, Refused."""
        number, actor = await self._number(job), await self._rt.actor(Source.API)
        await self._rt.queues.prioritize(number, priority, actor)

    async def order(self, limit: int = 50, queue: str | None = None) -> list[QueuedJob]:
        """Return the waiting jobs by queue: those that can be claimed, in their order, then others.

        `hold` is the reason of their wait, also for a worker; None: they wait for a free slot.
        """
        waiting = await self._rt.queues.order(limit, queue)
        return [*waiting, *await self._rt.queues.held(limit, queue)][:limit]

    async def why(self, job: JobName) -> WaitReason:
        """Return the reason of the status of a job, and the next step; raises NotFound."""
        return await self._rt.read_model.why(await self._number(job))

    async def _number(self, job: JobName) -> int:
        if isinstance(job, Job | SubmittedJob):
            return job.number
        return await self._rt.read_model.resolve(parse_job(str(job)))
