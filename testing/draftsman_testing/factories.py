"""Jobs in any state, brought there by real transitions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from draftsman.errors import Failure
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done, Snooze
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.jobs.runs.service.claim import CONNECT_TIMEOUT
from draftsman.jobs.runs.store.claim import exchange
from draftsman.people.actor import Actor
from draftsman.questions.answer import Verdict
from draftsman.questions.asked_question import AskedQuestion
from draftsman.questions.question import Decision, OnChanges, QuestionKind
from draftsman.questions.question_spec import QuestionSpec
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman.worker.registry import store as workers
from draftsman_testing.pooled_line import PooledLine
from draftsman_testing.waits import until

QUESTION = QuestionSpec(key="pick", text="Which one?", choices=("red", "blue"))
EVENTS = count(1)
"""Ids of channel events: each is another click or message."""
GATE = QuestionSpec(
    key="gate", kind=QuestionKind.APPROVAL, text="Deploy?", approvers=("carol", "dave")
)
REVIEW = GATE.model_copy(
    update={"key": "review", "text": "Publish the work?", "on_changes": OnChanges.TELL}
)
"""An approval of work, of which changes can be requested."""
PATCH = b"""\
diff --git a/a.py b/a.py
index 1..2 100644
--- a/a.py
+++ b/a.py
@@ -1,2 +1,3 @@
 one
-two
+2
+3
diff --git a/b.txt b/b.txt
new file mode 100644
index 0..1
--- /dev/null
+++ b/b.txt
@@ -0,0 +1 @@
+b
"""
"""A patch of two files, whose new lines are 1 to 3 and 1."""


class Factory:
    """Factory of jobs of type `noop`, each in its own queue unless a queue is named."""

    def __init__(self, rt: Runtime, owner: Actor) -> None:
        self.rt = rt
        self.owner = owner
        self.worker = uuid4()
        self._line = PooledLine(rt.db)
        self._claiming = asyncio.Lock()

    async def queued(self, *, actor: Actor | None = None, **fields: Any) -> int:
        """Submit a job; return its number."""
        fields = {"type": "noop", "queue": f"q-{uuid4().hex[:12]}"} | fields
        return (await self.rt.submissions.submit(invocation(**fields), actor or self.owner)).number

    async def scheduled(self, **fields: Any) -> int:
        """Submit a job that is due in an hour."""
        return await self.queued(**{"delay": 3600} | fields)

    async def claimed(self, number: int | None = None, **fields: Any) -> ClaimedJob:
        """Claim a job ahead of a slot."""
        return await self._claim(number, 0, 1, **fields)

    async def running(self, number: int | None = None, **fields: Any) -> ClaimedJob:
        """Claim and start an existing or a new job."""
        return await self._claim(number, 1, 0, **fields)

    async def asked(self, item: QuestionSpec = QUESTION, **fields: Any) -> ClaimedJob:
        """Ask in the run of a new job, as the job's first question."""
        work = await self.running(**fields)
        assert await self.rt.asking.ask(work.lease, item) == f"{work.name}/1"
        return work

    async def asked_at_once(
        self, *items: QuestionSpec, alternatives: bool = False, **fields: Any
    ) -> ClaimedJob:
        """Ask several questions in the run of a new job."""
        work = await self.running(**fields)
        first = 1 if alternatives else None
        asked = [AskedQuestion(item, alternative_to=first) for item in items]
        names = await self.rt.asking.ask_all(work.lease, asked, invoker=work.invoker_id)
        assert names == [f"{work.name}/{place}" for place in range(1, len(items) + 1)]
        return work

    async def resumed(self, **fields: Any) -> int:
        """Run a job and release it."""
        work = await self.running(**fields)
        assert await self.rt.settlement.release_run(work, "shutdown") is Status.RESUMED
        return work.number

    async def paused(self, seconds: float = 3600, **fields: Any) -> int:
        """Run a job that then sleeps: scheduled, and no longer new."""
        work = await self.running(**fields)
        assert await self.rt.settlement.outcome(work, Snooze(seconds)) is Status.SCHEDULED
        return work.number

    async def retrying(self, **fields: Any) -> int:
        """Run a job that fails with a transient error."""
        work = await self.running(**fields)
        failure = Failure("busy", http_status=503)
        assert await self.rt.settlement.failure(work, failure) is Status.RETRYING
        return work.number

    async def set_due(self, number: int, seconds: float) -> None:
        """Make a retrying job due in `seconds`."""
        async with self.rt.db.connection() as conn:
            await conn.execute(
                "UPDATE draftsman.job_states SET next_retry_at = draftsman.now()"
                " + make_interval(secs => %s) WHERE number = %s",
                (seconds, number),
            )

    async def due(self, number: int) -> None:
        """Make a retrying job due now."""
        await self.set_due(number, 0)
        await self.rt.promotion.promote(LeaderTerm())
        job = await self.rt.read_model.job(number)
        assert job.status is not Status.RETRYING, "a running worker may have claimed it already"

    async def completed(self, result: dict[str, Any] | None = None, **fields: Any) -> int:
        """Run a job to completion."""
        work = await self.running(**fields)
        assert await self.rt.settlement.outcome(work, Done(result or {})) is Status.COMPLETED
        return work.number

    async def failed(self, **fields: Any) -> int:
        """Run a job that fails permanently."""
        work = await self.running(**fields)
        failure = Failure("no such thing", declared="PERMANENT")
        assert await self.rt.settlement.failure(work, failure) is Status.FAILED
        return work.number

    async def dead(self, **fields: Any) -> int:
        """Run a job that has no attempts left."""
        work = await self.running(**{"max_attempts": 1} | fields)
        assert await self.rt.settlement.failure(work, Failure("gone")) is Status.DEAD_LETTER
        return work.number

    async def canceled(self, **fields: Any) -> int:
        """Cancel a queued job."""
        number = await self.queued(**fields)
        await self.rt.job_control.cancel(number, self.owner)
        return number

    async def expired(self, **fields: Any) -> int:
        """Ask in a job, without an answer until the question expires."""
        item = QUESTION.model_copy(update={"expires_in": 0.000001})
        work = await self.asked(item, **fields)
        assert await self.rt.expiry.expire(LeaderTerm()) == 1
        return work.number

    async def job_in(self, status: Status, **fields: Any) -> int:
        """Bring a new job into a status."""
        created = await self._makers()[status](**fields)
        return created if isinstance(created, int) else created.number

    async def reviewed(self, patch: bytes = PATCH, **fields: Any) -> ClaimedJob:
        """Ask for the approval of work with this patch, of which changes can be requested."""
        work = await self.running(**fields)
        await self.rt.changes.store(work.lease, patch)
        await self.rt.asking.ask(work.lease, REVIEW)
        return work

    async def overtaken(self, actor: Actor, **fields: Any) -> ClaimedJob:
        """Request changes of an approval that its agent replaces: its tree is another by then."""
        asks = REVIEW.model_copy(update={"on_changes": OnChanges.CONTINUE})
        work = await self.running(**fields)
        await self.rt.changes.store(work.lease, PATCH)
        await self.rt.asking.ask(work.lease, asks)
        comments = [{"path": "a.py", "line": 3, "text": "handle None"}]
        await self.review(
            work.number, Decision.REQUEST_CHANGES, actor, reason="use the v2 API", comments=comments
        )
        again = await self.running(work.number)
        await self.rt.changes.store(again.lease, PATCH.replace(b"+2\n", b"+two\n"))
        await self.rt.asking.ask(again.lease, asks)
        return again

    async def answer(
        self, job: int, text: str, actor: Actor | None = None, n: int = 1, *, only: bool = False
    ) -> Verdict:
        """Answer a question, as a new event of the channel; `only` this, not identical ones."""
        response = Response(source_event_id=f"event-{next(EVENTS)}", text=text)
        return await self.rt.questions.answer(job, n, response, actor or self.owner, only=only)

    async def decide(self, job: int, yes: bool, actor: Actor, n: int = 1, **more: Any) -> Verdict:
        """Approve or deny an approval, as a new event of the channel."""
        decision = Decision.APPROVE if yes else Decision.DENY
        return await self.review(job, decision, actor, n, **more)

    async def review(
        self, job: int, decision: Decision, actor: Actor, n: int = 1, **more: Any
    ) -> Verdict:
        """Decide an approval, as a new event of the channel."""
        event = f"event-{next(EVENTS)}"
        response = Response(source_event_id=event, decision=decision, **more)
        return await self.rt.questions.answer(job, n, response, actor)

    async def worker_row(self, **fields: Any) -> UUID:
        """Register a worker on another host, without a process."""
        id = fields.pop("id", None) or uuid4()
        row: dict[str, Any] = {
            "host": "far",
            "host_id": "far",
            "pid": 1,
            "pid_started": 0.0,
            "version": "0",
        }
        row |= {"types": ["noop"], "queues": ["default"], "slots": 2} | fields
        async with self.rt.db.connection() as conn:
            await workers.register(conn, id=id, **row)
        return id

    async def _claim(self, number: int | None, free: int, ahead: int, **fields: Any) -> ClaimedJob:
        worker = fields.pop("worker", self.worker)
        job = await self.rt.read_model.job(number or await self.queued(**fields))
        got: list[ClaimedJob] = []

        async def look() -> bool:
            async with self._claiming, self._line.connection(CONNECT_TIMEOUT) as conn:
                got.extend(
                    await exchange(
                        conn,
                        [],
                        worker=worker,
                        queues=[job.queue],
                        types=[job.type],
                        free=free,
                        ahead=ahead,
                    )
                )
            return bool(got)

        # a notification holds its lock for a moment, and claims skip locked jobs
        await until(look, f"D-{job.number} to be claimed")
        assert [work.number for work in got] == [job.number]
        return got[0]

    def _makers(self) -> dict[Status, Callable[..., Awaitable[int | ClaimedJob]]]:
        return {
            Status.SCHEDULED: self.scheduled,
            Status.QUEUED: self.queued,
            Status.CLAIMED: self.claimed,
            Status.RUNNING: self.running,
            Status.WAITING_FOR_INPUT: self.asked,
            Status.WAITING_FOR_APPROVAL: lambda **fields: self.asked(GATE, **fields),
            Status.RESUMED: self.resumed,
            Status.RETRYING: self.retrying,
            Status.COMPLETED: self.completed,
            Status.FAILED: self.failed,
            Status.DEAD_LETTER: self.dead,
            Status.CANCELED: self.canceled,
            Status.EXPIRED: self.expired,
        }
