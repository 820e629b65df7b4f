"""A message as JSON, for whoever reads it by machine. Pure."""

from __future__ import annotations

from typing import Any, Final

from draftsman.domain.delivery import DeliveryKind, Message, Subject
from draftsman.domain.question import Question
from draftsman.domain.wording import how_to_answer, plain, settled

TYPES: Final = {
    DeliveryKind.STATUS: "job.status",
    DeliveryKind.QUESTION: "question.asked",
    DeliveryKind.QUESTION_CLOSED: "question.closed",
    DeliveryKind.REMINDER: "question.reminder",
    DeliveryKind.RESULT: "job.result",
    DeliveryKind.NOTICE: "job.notice",
    DeliveryKind.FILE: "job.file",
}
"""What a message of each kind is called."""


def document(message: Message) -> dict[str, Any]:
    """Return the type of the message, when it was caused, and all that it says."""
    data: dict[str, Any] = {"text": plain(message), "job": _job(message.subject)}
    if message.question is not None:
        data["question"] = _question(message.question)
    if message.edits is not None:
        data["edits"] = message.edits
    if message.payload:
        data["payload"] = message.payload
    return {
        "type": TYPES[message.kind],
        "timestamp": message.created_at.isoformat(),
        "data": data,
    }


def _job(subject: Subject) -> dict[str, Any]:
    fields = {
        "number": subject.number,
        "id": str(subject.id),
        "name": subject.name,
        "title": subject.title,
        "type": subject.type,
        "status": str(subject.status),
        "agent": subject.agent,
        "repo": subject.repo,
        "url": subject.url,
        "asked_by": subject.invoker,
        "error": subject.error,
        "canceled_by": subject.canceled_by,
        "cancel_reason": subject.cancel_reason,
        "result": subject.result,
        "finished_at": subject.finished_at.isoformat() if subject.finished_at else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _question(question: Question) -> dict[str, Any]:
    fields = {
        "name": question.name,
        "kind": str(question.kind),
        "status": str(question.status),
        "text": question.text,
        "choices": question.choices,
        "freeform": question.freeform_allowed,
        "context": question.context_snippet,
        "expires_at": question.expires_at.isoformat() if question.expires_at else None,
        "escalated_to": question.escalate_to if question.escalated_at else None,
        "resolution": question.resolution,
    }
    said = settled(question) if question.resolution else how_to_answer(question)
    return {name: value for name, value in fields.items() if value is not None} | {"then": said}
