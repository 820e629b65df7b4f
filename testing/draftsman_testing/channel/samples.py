"""Messages of a job, without a database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final
from uuid import UUID, uuid4

from draftsman.deliveries.delivery import DeliveryKind, Message, Subject
from draftsman.jobs.job import Status
from draftsman.questions.question import OnDeny, OnExpire, Question, QuestionKind, QuestionStatus

WHEN: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def message(kind: DeliveryKind = DeliveryKind.RESULT, **fields: object) -> Message:
    """Return a message of a job."""
    subject = Subject(
        7, UUID(int=7), "noop", Status.COMPLETED, "Tidy <!channel> up", invoker="anna",
        result={"summary": "all is well", "pr_url": "https://example.org/pr/1"},
    )  # fmt: skip
    built = Message(str(uuid4()), 1, kind, "ops", subject, WHEN, question=question())
    return replace(built, **fields)  # type: ignore[arg-type]


def question(**fields: object) -> Question:
    """Return an open question with two choices."""
    built = Question(
        7, 2, 1, "pick", QuestionKind.INPUT, QuestionStatus.OPEN, "Which one?",
        [{"value": "red", "label": "Red"}, {"value": "blue", "label": "Blue"}], True, None, [], 1,
        OnExpire.EXPIRE, None, OnDeny.FAIL, "d", None, None, WHEN, None, None,
    )  # fmt: skip
    return replace(built, **fields)  # type: ignore[arg-type]
