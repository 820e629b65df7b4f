"""JSON representation of a message, for programs. Pure."""

from __future__ import annotations

from typing import Any, Final

from draftsman.deliveries.delivery import DeliveryKind, Message, Subject
from draftsman.deliveries.plain_text import how_to_answer, render_plain, resolution_text
from draftsman.questions.question import Question

TYPES: Final = {
    DeliveryKind.STATUS: "job.status",
    DeliveryKind.QUESTION: "question.asked",
    DeliveryKind.QUESTION_CLOSED: "question.closed",
    DeliveryKind.REMINDER: "question.reminder",
    DeliveryKind.RESULT: "job.result",
    DeliveryKind.NOTICE: "job.notice",
    DeliveryKind.FILE: "job.file",
}
"""The `type` of a message by its kind."""


def message_document(message: Message) -> dict[str, Any]:
    """Return the message as a document with `type`, `timestamp` and `data`."""
    data: dict[str, Any] = {"text": render_plain(message), "job": _job(message.subject)}
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
        "group": subject.group,
        "repo": subject.repo,
        "url": subject.url,
        "invoker": subject.invoker,
        "error": subject.error,
        "paused_by": subject.paused_by if subject.pause_reason is not None else None,
        "pause_reason": subject.pause_reason,
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
    hint = resolution_text(question) if question.resolution else how_to_answer(question)
    return {name: value for name, value in fields.items() if value is not None} | {"hint": hint}
