"""Methods of the client about questions."""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

from draftsman.attention.pings import ReminderDelay
from draftsman.client.requests import JobName
from draftsman.client.schedules import ScheduleClient
from draftsman.errors import QuestionClosed, Refused, UsageError
from draftsman.ids import parse_question
from draftsman.jobs.job import Source
from draftsman.questions.answer import Verdict
from draftsman.questions.question import Question
from draftsman.questions.response import Response

HOUR = 3600.0
"""Default duration of an acknowledgment and of a delegation, in seconds."""


class QuestionClient(ScheduleClient):
    """The part of `Client` that concerns questions."""

    async def questions(self, job: JobName | None = None) -> list[Question]:
        """Return the open questions of a job, or of all jobs, the next to expire first."""
        number = None if job is None else await self._number(job)
        return list(await self._rt.questions.open(number))

    async def answer(self, question: str | Question, text: str) -> Verdict:
        """Answer a question (`"D-142/1"`) with a choice or with free text.

        Raises NotFound, UsageError for an invalid answer, QuestionClosed if the question is
        already resolved, and Refused otherwise.
        """
        return await self._respond(question, text=text)

    async def approve(self, question: str | Question, reason: str | None = None) -> Verdict:
        """Approve an approval; raises as `answer` does."""
        return await self._respond(question, decision=True, reason=reason)

    async def deny(self, question: str | Question, reason: str | None = None) -> Verdict:
        """Deny an approval; raises as `answer` does."""
        return await self._respond(question, decision=False, reason=reason)

    async def acknowledge(self, question: str | Question, seconds: float = HOUR) -> ReminderDelay:
        """Acknowledge a question: you work on the answer, and others are not notified until then.

        Raises NotFound, UsageError for more than a day, QuestionClosed, and Refused while another
        person works on it.
        """
        job, ordinal = await self._question(question)
        actor = await self._rt.actor(Source.API)
        return await self._rt.acknowledgments.acknowledge(job, ordinal, actor, seconds)

    async def snooze(self, question: str | Question, seconds: float) -> datetime:
        """Pause your own reminders of a question; return until when.

        Raises as `acknowledge` does.
        """
        job, ordinal = await self._question(question)
        actor = await self._rt.actor(Source.API)
        return await self._rt.acknowledgments.snooze(job, ordinal, actor, seconds)

    async def delegate(
        self, question: str | Question, person: str, seconds: float = HOUR
    ) -> datetime:
        """Ask another person to answer a question; return until when others are not notified.

        Raises as `acknowledge` does, and UsageError for an unknown person.
        """
        job, ordinal = await self._question(question)
        actor = await self._rt.actor(Source.API)
        return await self._rt.acknowledgments.delegate(job, ordinal, actor, person, seconds)

    async def _respond(
        self,
        question: str | Question,
        *,
        text: str | None = None,
        decision: bool | None = None,
        reason: str | None = None,
    ) -> Verdict:
        job, ordinal = await self._question(question)
        response = Response(
            source_event_id=f"api:{uuid4()}", text=text, decision=decision, reason=reason
        )
        actor = await self._rt.actor(Source.API)
        verdict = await self._rt.questions.answer(job, ordinal, response, actor)
        if verdict.accepted:
            return verdict
        refusal = verdict.reason or f"{verdict.name} does not accept this answer"
        raise QuestionClosed(refusal) if verdict.resolved else Refused(refusal)

    async def _question(self, question: str | Question) -> tuple[int, int]:
        if isinstance(question, Question):
            return question.job, question.ordinal
        job, ordinal = parse_question(question)
        number = await self._rt.read_model.resolve(job)
        if ordinal is None:
            raise UsageError(f"{question!r} is a job; specify a question, such as {question}/1")
        return number, ordinal
