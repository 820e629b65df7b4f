"""Load generator: requests of every job type, some sent by several sessions at once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from draftsman.jobs.job import TERMINAL, Status
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.runtime import Runtime
from draftsman_soak.actors import actor_for
from draftsman_soak.ledger import Ledger, retry_until_reachable
from draftsman_soak.seed_config import KEYS, PEOPLE, PREFIX

LIVE: Final = 40
"""Live jobs above which no more are submitted."""
WAITING: Final = frozenset({Status.SCHEDULED, Status.RETRYING})
"""Statuses of jobs that wait for a time, which are minutes away after the clock was put back."""
BATCH: Final = 4
LOOK: Final = 0.25
"""Seconds between two checks of the number of live jobs."""
AGENTS: Final = 2
"""Maximum concurrent jobs of the sample agent; each clones a repository and runs a dozen
programs."""
WEIGHTS: Final[dict[str, float]] = {
    "steps": 5,
    "ask": 4,
    "both": 2,
    "gate": 3,
    "defaulted": 2,
    "rest": 2,
    "flaky": 2,
    "doomed": 1,
    "crash": 0.3,
    "rare": 2,
}
KEYED: Final = ("rest", "flaky")
"""Types of which half of the jobs have a concurrency key."""


@dataclass(slots=True)
class LoadGenerator:
    """Submits the jobs of a seed through several sessions."""

    sessions: Sequence[Runtime]
    ledger: Ledger
    chance: random.Random
    folder: Path
    repo: Path | None = None
    """Repository of the sample agent; None without git."""
    on_made: Callable[[int], object] = lambda _: None
    _count: int = field(default=0, init=False)

    async def run(self) -> None:
        """Submit jobs while fewer than LIVE are live and wait for no time, until canceled."""
        while True:
            counts = await retry_until_reachable(lambda: self.sessions[0].read_model.stats())
            idle = TERMINAL | WAITING
            live = sum(count for status, count in counts.jobs.items() if status not in idle)
            if live < LIVE:
                await asyncio.gather(*(self.submit(self.request()) for _ in range(BATCH)))
                await self._submit_agent_job()
            await asyncio.sleep(LOOK)

    async def submit(self, request: Invocation) -> None:
        """Submit a request, sometimes through all sessions at once; all must get the same job."""
        copies = self.chance.choice((1, 1, len(self.sessions)))
        actor = actor_for(PEOPLE[0])

        async def send(session: Runtime) -> None:
            job = await retry_until_reachable(lambda: session.submissions.submit(request, actor))
            self.acknowledge(request, job.number)

        await asyncio.gather(*(send(session) for session in self.sessions[:copies]))

    def acknowledge(self, request: Invocation, job: int) -> None:
        """Record the job of a request that was acknowledged."""
        is_new = job not in self.ledger.jobs
        self.ledger.requests.setdefault(str(request.key), set()).add(job)
        self.ledger.jobs[job] = request.type
        if is_new:
            self.on_made(job)

    def request(self, name: str = "") -> Invocation:
        """Return the next request, of any type unless named."""
        name = name or self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        payload: dict[str, Any] = {
            "outside": str(self.folder),
            "lookup": self.chance.random() < 0.5,
            "pause": self.chance.choice((0.05, 0.1, 0.5)),
            "steps": self.chance.randint(1, 6),
            "questions": self.chance.randint(1, 3),
            "expires_in": self.chance.uniform(1, 4),
            "quorum": self.chance.randint(1, len(PEOPLE) - 1),
            "seconds": self.chance.uniform(0.2, 2),
            "failures": self.chance.randint(1, 3),
            "crashes": self.chance.randint(1, 2),
        }
        is_keyed = name in KEYED and self.chance.random() < 0.5
        return invocation(
            type=f"{PREFIX}{name}",
            key=self._key(),
            payload=payload,
            concurrency_key=f"key-{self.chance.randrange(KEYS)}" if is_keyed else None,
        )

    async def _submit_agent_job(self) -> None:
        if self.repo is None:
            return
        lines = await retry_until_reachable(
            lambda: self.sessions[0].read_model.jobs(agent="tidy", limit=AGENTS)
        )
        if sum(line.status not in TERMINAL for line in lines) < AGENTS:
            repo = str(self.repo)
            await self.submit(
                invocation(type="run_agent", agent="tidy", repo=repo, key=self._key())
            )

    def _key(self) -> str:
        self._count += 1
        return f"request-{self._count}"
