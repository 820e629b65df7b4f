"""The people: they answer, vote, cancel and retry, often two at once, and never give up."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from draftsman.domain.answer import Response, Verdict
from draftsman.domain.job import Status
from draftsman.domain.question import Question, QuestionKind
from draftsman.errors import DatabaseUnreachable, LostRace, Refused
from draftsman.runtime import Runtime
from draftsman_soak.actors import actor_for
from draftsman_soak.ledger import Ledger, SubmittedAnswer, retry_until_reachable
from draftsman_soak.seed_config import PEOPLE

LOOK: Final = 0.1
"""Seconds between two looks at what is open."""
CANCELED: Final = 0.08
"""Share of the jobs that somebody cancels, whatever they are doing by then."""
SAFE: Final = "safe fixes"
"""What the sample agent is told, if it is a choice."""


@dataclass(slots=True)
class SimulatedUsers:
    """Everybody who has to do with the jobs of one seed."""

    sessions: Sequence[Runtime]
    ledger: Ledger
    chance: random.Random
    cancels: bool = True
    """Whether jobs are canceled still."""
    _left: set[str] = field(default_factory=set, init=False)
    """Questions that nobody answers: they decide themselves."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set, init=False)

    async def run(self) -> None:
        """Answer what is open and retry what is dead, until cancelled."""
        try:
            while True:
                asked = await retry_until_reachable(lambda: self.sessions[0].questions.open())
                await asyncio.gather(*(self._attend(question) for question in asked))
                await self._retry_dead()
                await asyncio.sleep(LOOK)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def made(self, job: int) -> None:
        """Hear of a new job; some are canceled, often as they end."""
        if self.cancels and self.chance.random() < CANCELED:
            after = self.chance.uniform(0, self.chance.choice((0.3, 4)))
            task = asyncio.create_task(self._cancel(job, after))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _attend(self, question: Question) -> None:
        """Decide once whether anybody cares, then answer: alone, twice, or against another."""
        if question.name in self._left:
            return
        if question.default_value is not None and self.chance.random() < 0.5:
            self._left.add(question.name)
            return
        first, second = self.chance.sample(PEOPLE[1:], 2)
        one, other = self._response(question, first), self._response(question, second)
        left, right = self.sessions[0], self.sessions[-1]
        match self.chance.randrange(4):
            case 0:
                await self._give(left, question, one, first)
            case 1:  # the same click twice, one after the other
                await self._give(left, question, one, first)
                await self._give(right, question, one, first)
            case 2:  # the same click twice at once
                await asyncio.gather(
                    self._give(left, question, one, first), self._give(right, question, one, first)
                )
            case _:  # two people at once
                await asyncio.gather(
                    self._give(left, question, one, first),
                    self._give(right, question, other, second),
                )

    def _response(self, question: Question, name: str) -> Response:
        """Return what somebody says, under an id of its own: another word is another message."""
        event = f"{name}:{question.name}"
        if question.kind is QuestionKind.APPROVAL:
            approves = self.chance.random() < 0.9
            return Response(source_event_id=f"{event}:{approves}", decision=approves)
        values = question.labels()
        said = SAFE if SAFE in values else self.chance.choice(list(values))
        return Response(source_event_id=f"{event}:{said}", text=said)

    async def _give(
        self, session: Runtime, question: Question, response: Response, name: str
    ) -> None:
        """Give an answer until it is acknowledged, and write down what was said to it."""

        async def call() -> Verdict:
            actor = actor_for(name)
            return await session.questions.answer(question.job, question.ordinal, response, actor)

        verdict = await retry_until_reachable(call)
        said = response.text or ("approve" if response.decision else "deny")
        self.ledger.submitted_answers.append(
            SubmittedAnswer(
                question.job,
                question.ordinal,
                response.source_event_id,
                name,
                said,
                verdict.accepted,
                is_decided(verdict),
            )
        )

    async def _cancel(self, job: int, after: float) -> None:
        """Cancel it once; an acknowledgement that was lost leaves it open what came of it."""
        await asyncio.sleep(after)
        self.ledger.cancel_tries.add(job)
        try:
            await self.sessions[-1].job_control.cancel(job, actor_for(PEOPLE[0]), "soak")
        except (DatabaseUnreachable, LostRace, Refused):
            return
        self.ledger.cancels.add(job)

    async def _retry_dead(self) -> None:
        """Retry what spent its budget, through two sessions at once: both must find one job."""
        session = self.sessions[0]
        dead = await retry_until_reachable(
            lambda: session.read_model.jobs(statuses=[Status.DEAD_LETTER])
        )
        for line in dead:
            if line.number not in self.ledger.retries:
                await asyncio.gather(
                    *(self._retry(session, line.number, line.type) for session in self.sessions)
                )

    async def _retry(self, session: Runtime, job: int, type: str) -> None:
        made = await retry_until_reachable(
            lambda: session.job_control.retry(job, actor_for(PEOPLE[0]))
        )
        self.ledger.retries.setdefault(job, set()).add(made.number)
        self.ledger.jobs[made.number] = type


def is_decided(verdict: Verdict) -> bool:
    """Return whether people decided the question, as somebody who answers is told.

    An answer that is handed in again may find it closed otherwise: a cancel came in between.
    """
    outcome = (verdict.resolution or {}).get("outcome")
    return verdict.resolved and outcome not in ("canceled", "expired")
