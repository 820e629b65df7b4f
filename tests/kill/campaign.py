"""Campaigns: a fault at every point that a process reaches, until there is no new point."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

from psycopg import OperationalError

from draftsman.database.named_queries import load
from draftsman.errors import DraftsmanError, Refused
from draftsman.jobs.event_kinds import AGENT_KIND
from draftsman.jobs.job import Source
from draftsman.jobs.job_summary import JobSummary
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.questions.question import Decision, QuestionKind
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.people import GROUPS, PEOPLE
from tests.kill.processes import Process, Reached, Zygote
from tests.kill.work import HANDLERS
from tests.support.statements import rows

READY: Final = {"schema.listen after", "registry.acquire after"}
"""Points that a worker passes before it is fully running."""
STARTED: Final = "claim.exchange before"
"""Points that a worker passes before it survives the loss of its database."""
LIMITS: Final = {"max_attempts": 100, "max_retries": 100, "base_delay": 0.02, "max_delay": 0.05}
PATIENCE: Final = 100.0
"""Seconds without a new point after which a campaign counts as stuck."""
LEASE: Final = 60
"""Seconds, longer than crashes of the server at the queries of a call, one after the other, on a
busy machine: a worker whose lease ends exits."""
LEFT: Final = """
SELECT FROM draftsman.jobs WHERE finished_at IS NULL
 UNION ALL
SELECT FROM draftsman.deliveries
 WHERE channel = 'log' AND status IN ('pending', 'sending', 'unconfirmed')
 LIMIT 1
"""
LISTENS: Final = f"{AGENT_KIND}listens"
"""Event of an agent that waits for a message."""
LOOK: Final = 0.05
"""Seconds between two polls of the rows."""
HASTEN: Final = """
UPDATE draftsman.job_states SET next_retry_at = draftsman.now()
 WHERE status = 'retrying' AND next_retry_at > draftsman.now() + interval '100 ms'
"""
"""The wait after a failure of the infrastructure is 3 s and grows, and a leader that was cut off
takes a second to lead again; the tests have no time."""

VIOLATED: Final = " UNION ALL ".join(
    f"SELECT '{name}' WHERE EXISTS (\n{query}\n)"
    for name, query in load("draftsman.jobs.details.invariants").items()
)
"""The names of the invariants that do not hold, in a single query."""

FaultAction = Callable[[Process, Reached], Awaitable[bool]]
"""Injects a fault at a point, and continues the process; returns whether it lives."""


def configuration(url: str, folder: Path, **more: Any) -> dict[str, Any]:
    """Return a normal configuration with short intervals."""
    types: dict[str, Any] = {name: LIMITS | {"on_lost": "resume"} for name in HANDLERS}
    types["kill:lost"] = LIMITS | {"on_lost": "new_job"}
    types["run_agent"] = LIMITS
    return {
        "database_url": url,
        "data_dir": str(folder / "data"),
        "people": PEOPLE,
        "groups": GROUPS,
        "handlers": HANDLERS,
        "types": types,
        "worker": {
            "slots": 3,
            "prefetch": 1,
            "poll": 0.05,
            "heartbeat": 0.1,
            "lease": LEASE,
            "drain": 0,
            "abort": 2,
        },
        "sweeps": {"interval": 0.5, "lease": 1},
        "notifications": {
            "timeout": 0.5,
            "lease": 2,
            "poll": 0.05,
            "base_delay": 0.02,
            "max_delay": 0.05,
            "max_attempts": 100,
        },
    } | more


@dataclass
class Campaign:
    """The points reached so far, and the faults injected."""

    rt: Runtime
    zygote: Zygote
    settings: dict[str, Any]
    pending: set[str]
    inject: FaultAction
    reached: set[str] = field(default_factory=set)
    faulted: list[str] = field(default_factory=list)

    async def work(self, over: Callable[[], Awaitable[bool]]) -> None:
        """Run workers until the work is done, and the last has stopped cleanly."""
        while not await self.worker(over):
            pass

    async def ask(self, script: str, **jobs: int) -> None:
        """Run clients with a script until a client finishes without a fault."""
        for _ in range(len(self.pending) + 5):
            before = len(self.faulted)
            client = await self._fork(script, **jobs)
            finished = False
            while (reached := await self._next(client)) is not None:
                finished |= "end" in reached.points
                if not await self._meet(client, reached):
                    break
            client.close()
            if finished:
                return
            assert len(self.faulted) > before, f"{script} failed: {self.diagnosis()}"
        raise AssertionError(f"{script} does not end: {self.diagnosis()}")

    async def worker(self, over: Callable[[], Awaitable[bool]]) -> bool:
        """Run a worker; return whether it stopped cleanly, without a fault."""
        worker = await self._fork("worker")
        passed = set[str]()
        before = len(self.faulted)
        stopping = asyncio.create_task(self._stop(worker, passed, over))
        try:
            while (reached := await self._next(worker)) is not None:
                passed.update(reached.points)
                if not await self._meet(worker, reached):
                    return False
        finally:
            stopping.cancel()
            worker.close()
            with suppress(asyncio.CancelledError):
                await stopping  # its error explains why the worker never got a stop signal
        if STARTED not in passed and len(self.faulted) > before:
            return False  # without a database a worker does not start, and says so
        assert not stopping.cancelled(), f"the worker exited unexpectedly: {self.diagnosis()}"
        assert "end" in passed, f"the worker failed: {self.diagnosis()}"
        return len(self.faulted) == before

    async def _stop(
        self, worker: Process, passed: set[str], over: Callable[[], Awaitable[bool]]
    ) -> None:
        loop = asyncio.get_running_loop()
        faults = len(self.faulted)
        try:
            async with asyncio.timeout(PATIENCE) as limit:
                while not (passed >= READY and await self._is(over)):
                    if len(self.faulted) > faults:  # each takes a second if the server crashes
                        faults = len(self.faulted)
                        limit.reschedule(loop.time() + PATIENCE)
                    await asyncio.sleep(LOOK)
        except TimeoutError:
            await self._give_up(worker)
        worker.signal(signal.SIGTERM)

    async def _is(self, over: Callable[[], Awaitable[bool]]) -> bool:
        with suppress(DraftsmanError):
            return await over()
        return False

    async def _fork(self, role: str, **jobs: int) -> Process:
        return await self.zygote.fork(role, self.settings, self.pending, **jobs)

    async def _next(self, process: Process) -> Reached | None:
        try:
            return await asyncio.wait_for(process.reached(), PATIENCE)
        except TimeoutError:
            await self._give_up(process)

    async def _give_up(self, process: Process) -> NoReturn:
        process.signal(signal.SIGUSR1)
        unfinished = [(job.number, job.type, job.status) for job in await jobs_of(self.rt)]
        await asyncio.sleep(1)  # the time for it to print where its tasks wait
        process.signal(signal.SIGKILL)
        raise AssertionError(f"the campaign is stuck: {unfinished} {self.diagnosis()}")

    async def _meet(self, process: Process, reached: Reached) -> bool:
        self.reached.update(reached.points)
        if not reached.stop:
            return True
        self.pending.difference_update(reached.points)
        self.faulted += reached.points
        lives = await self.inject(process, reached)
        async with self.rt.db.connection() as conn:
            broken = await rows(conn, VIOLATED)
        assert broken == [], f"at {reached.points}"
        return lives

    def diagnosis(self) -> str:
        """Return the last fault, and the output of the processes."""
        return f"{self.faulted[-3:]}\n{self.zygote.log.read_text()[-12000:]}"


async def jobs_of(rt: Runtime) -> list[JobSummary]:
    """Return all jobs; each killed client has submitted those without keys again."""
    jobs = list(await rt.read_model.jobs(limit=1000))
    while older := await rt.read_model.jobs(limit=1000, before=jobs[-1].number):
        jobs += older
    return jobs


async def all_ended(rt: Runtime) -> bool:
    """Return whether all jobs have ended, and all deliveries to the log were written."""
    async with rt.db.connection() as conn:
        cursor = await conn.execute(LEFT)
        return await cursor.fetchone() is None


@asynccontextmanager
async def people_answer(rt: Runtime) -> AsyncIterator[None]:
    """Answer the open questions, each twice, write to agents, and make retries due at once."""
    task = asyncio.create_task(_answer(rt))
    try:
        yield
    finally:
        task.cancel()
        [end] = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(end, asyncio.CancelledError), end


async def _answer(rt: Runtime) -> None:
    cursor = (0, 0, 0)
    owner = Actor(Source.CLI, "root", "Root", person="root", owner=True)
    while True:
        with suppress(DraftsmanError, OperationalError):  # a deadlock of HASTEN with a transition
            for question in await rt.questions.open(limit=2000):
                if question.key in ("colour", "silence"):
                    continue  # it is already answered, or cannot be
                gate = question.kind is QuestionKind.APPROVAL
                fields: dict[str, Any] = {"decision": Decision.APPROVE} if gate else {"text": "yes"}
                response = Response(source_event_id=f"answer to {question.name}", **fields)
                carol = Actor(Source.CLI, "carol", "Carol")
                for _ in range(2):
                    await rt.questions.answer(
                        question.job, question.ordinal, response, carol if gate else owner
                    )
            listening, _ = await rt.read_model.events_of_kinds([LISTENS], cursor)
            for event in listening:
                with suppress(Refused):  # the job has ended
                    await rt.messages.send(event.job, owner, "go on", event=str(event.cursor))
                cursor = event.cursor
            async with rt.db.connection() as conn:
                await conn.execute(HASTEN)
            await rt.promotion.promote(LeaderTerm())
        await asyncio.sleep(LOOK)
