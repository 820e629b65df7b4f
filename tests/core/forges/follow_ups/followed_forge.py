"""A fake forge, and the processes that follow up on its pull requests."""

from __future__ import annotations

from dataclasses import dataclass

from draftsman.forges.follow_up_jobs.service import FollowUpSweep
from draftsman.jobs.job import Job
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from draftsman_bots.forges.receiver import ForgeReceiver
from tests.core.forges.api_contract import ForgeHarness
from tests.core.worker.workers import wait_for_end


@dataclass
class FollowedForge:
    """A forge, a runtime that reads it, and the processes that follow up."""

    site: ForgeHarness
    rt: Runtime
    receiver: ForgeReceiver

    async def step(self) -> None:
        """Read the forge, and process the new events; twice, as after a crash."""
        for _ in range(2):
            self.receiver._due["acme"] = 0.0
            await self.receiver.read_due(polls=True)
            forges = self.rt.settings.read_forges
            await FollowUpSweep(self.rt.db, self.rt.policy, forges).sweep(LeaderTerm())

    async def jobs(self, root: int) -> list[int]:
        """Return the jobs of a pull request."""
        family = await self.rt.forge_events.follow_ups.family(root)
        assert family is not None
        return list(family.jobs)

    async def follow_up(self, root: int, n: int) -> Job:
        """Wait for the end of a follow-up."""
        await self.step()
        jobs = await self.jobs(root)
        assert len(jobs) == n + 1, jobs
        job = await wait_for_end(self.rt, jobs[n])
        await self.step()
        return job
