"""Simulated users who answer, vote, cancel and retry, often concurrently."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from draftsman.errors import DatabaseUnreachable, LostRace, Refused
from draftsman.jobs.job import Status
from draftsman.questions.answer import Verdict
from draftsman.questions.question import Decision, Question, QuestionKind
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_soak.actors import actor_for
from draftsman_soak.ledger import Ledger, SubmittedAnswer, retry_until_reachable
from draftsman_soak.seed_config import PEOPLE

LOOK: Final = 0.1
"""Seconds between two reads of the open questions."""
CANCELED: Final = 0.08
"""Share of the jobs to cancel, in any status."""
SAFE: Final = "safe fixes"
"""Preferred answer to the sample agent's question."""


@dataclass(slots=True)
class SimulatedUsers:
    """All users of a seed."""

    sessions: Sequence[Runtime]
    ledger: Ledger
    chance: random.Random
    cancels: bool = True
    """Whether new jobs may be canceled."""
    _left_to_default: set[str] = field(default_factory=set, init=False)
    """Questions that are left to their default."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set, init=False)

    async def run(self) -> None:
        """Answer open questions and retry dead letters, until canceled."""
        try:
            while True:
                questions = await retry_until_reachable(lambda: self.sessions[0].questions.open())
                await asyncio.gather(*(self._respond(question) for question in questions))
                await self._retry_dead()
                await asyncio.sleep(LOOK)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def made(self, job: int) -> None:
        """Schedule the cancel of some new jobs, often near their end."""
        if self.cancels and self.chance.random() < CANCELED:
            after = self.chance.uniform(0, self.chance.choice((0.3, 4)))
            task = asyncio.create_task(self._cancel(job, after))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _respond(self, question: Question) -> None:
        """Answer a question: once, twice, or against another user; or leave it to its default."""
        if question.name in self._left_to_default:
            return
        if question.default_value is not None and self.chance.random() < 0.5:
            self._left_to_default.add(question.name)
            return
        first, second = self.chance.sample(PEOPLE[1:], 2)
        response = self._response(question, first)
        other = self._response(question, second)
        left = self.sessions[0]
        right = self.sessions[-1]
        match self.chance.randrange(4):
            case 0:
                await self._submit(left, question, response, first)
            case 1:  # the same click twice in sequence
                await self._submit(left, question, response, first)
                await self._submit(right, question, response, first)
            case 2:  # the same click twice at once
                await asyncio.gather(
                    self._submit(left, question, response, first),
                    self._submit(right, question, response, first),
                )
            case _:  # two people at once
                await asyncio.gather(
                    self._submit(left, question, response, first),
                    self._submit(right, question, other, second),
                )

    def _response(self, question: Question, name: str) -> Response:
        """Return a response whose event id depends on its value, as a new message would."""
        event = f"{name}:{question.name}"
        if question.kind is QuestionKind.APPROVAL:
            approves = self.chance.random() < 0.9
            decision = Decision.APPROVE if approves else Decision.DENY
            return Response(source_event_id=f"{event}:{approves}", decision=decision)
        values = question.values()
        text = SAFE if SAFE in values else self.chance.choice(list(values))
        return Response(source_event_id=f"{event}:{text}", text=text)

    async def _submit(
        self, session: Runtime, question: Question, response: Response, name: str
    ) -> None:
        """Submit an answer until it is acknowledged, and record the verdict."""

        async def call() -> Verdict:
            actor = actor_for(name)
            return await session.questions.answer(question.job, question.ordinal, response, actor)

        verdict = await retry_until_reachable(call)
        value = response.text or str(response.decision)
        self.ledger.submitted_answers.append(
            SubmittedAnswer(
                question.job,
                question.ordinal,
                response.source_event_id,
                name,
                value,
                verdict.accepted,
                is_decided(verdict),
            )
        )

    async def _cancel(self, job: int, after: float) -> None:
        """Cancel a job once; without an acknowledgement, the outcome is unknown."""
        await asyncio.sleep(after)
        self.ledger.cancel_tries.add(job)
        try:
            await self.sessions[-1].job_control.cancel(job, actor_for(PEOPLE[0]), "soak")
        except (DatabaseUnreachable, LostRace, Refused):
            return
        self.ledger.cancels.add(job)

    async def _retry_dead(self) -> None:
        """Retry dead letters through two sessions at once; both must get the same job."""
        session = self.sessions[0]
        dead = await retry_until_reachable(
            lambda: session.read_model.jobs(statuses=[Status.DEAD_LETTER])
        )
        for job in dead:
            if job.number not in self.ledger.retries:
                await asyncio.gather(
                    *(self._retry(session, job.number, job.type) for session in self.sessions)
                )

    async def _retry(self, session: Runtime, job: int, type: str) -> None:
        retried = await retry_until_reachable(
            lambda: session.job_control.retry(job, actor_for(PEOPLE[0]))
        )
        self.ledger.retries.setdefault(job, set()).add(retried.number)
        self.ledger.jobs[retried.number] = type


def is_decided(verdict: Verdict) -> bool:
    """Return whether an answer resolved the question, by the verdict.

    A repeated answer may find the question closed by a cancel in between.
    """
    outcome = (verdict.resolution or {}).get("outcome")
    return verdict.resolved and outcome not in ("canceled", "expired")
