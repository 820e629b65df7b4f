"""Printer of messages as JSON, for programs. Pure."""

from __future__ import annotations

from typing import Any, Final

from draftsman.deliveries.delivery import DeliveryKind, Message
from draftsman.deliveries.documents.builder import build_document
from draftsman.deliveries.documents.document import Addressees, Document, Headline, Part, RichPart
from draftsman.deliveries.documents.plain import how_to_answer, render_plain
from draftsman.deliveries.question_text import resolution_text
from draftsman.formats.json_data import as_data
from draftsman.questions.question import Question

TYPES: Final = {
    DeliveryKind.STATUS: "job.status",
    DeliveryKind.QUESTION: "question.asked",
    DeliveryKind.QUESTION_CLOSED: "question.closed",
    DeliveryKind.REMINDER: "question.reminder",
    DeliveryKind.RESULT: "job.result",
    DeliveryKind.NOTICE: "job.notice",
    DeliveryKind.FILE: "job.file",
    DeliveryKind.DIGEST: "questions.digest",
}
"""The `type` of a message by its kind."""
_LAYOUT: Final = frozenset({"most", "folds", "full"})
"""Fields of a part about what a medium leaves out, which JSON has."""


def message_json(message: Message) -> dict[str, Any]:
    """Return a message as an object with `type`, `timestamp` and `data`."""
    subject = message.subject
    data: dict[str, Any] = {
        "text": render_plain(message),
        "document": print_json(build_document(message)),
        "job": as_data(subject) | {"name": subject.name},
    }
    if message.question is not None:
        data["question"] = question_json(message.question)
    if message.edits is not None:
        data["edits"] = message.edits
    if message.payload:
        data["payload"] = message.payload
    return {
        "type": TYPES[message.kind],
        "timestamp": message.created_at.isoformat(),
        "data": data,
    }


def question_json(question: Question) -> dict[str, Any]:
    """Return the fields of a question, its name, and its resolution or how to answer as `hint`."""
    hint = resolution_text(question) if question.resolution else how_to_answer(question)
    data: dict[str, Any] = as_data(question)
    return data | {"name": question.name, "hint": hint}


def print_json(document: Document) -> list[dict[str, Any]]:
    """Return the parts of a document, whole, as objects whose `part` is their kind."""
    return [_part(part) for part in document]


def _part(part: Part | RichPart) -> dict[str, Any]:
    name = type(part).__name__.removesuffix("Part")
    kind = "".join(f"_{char.lower()}" if char.isupper() else char for char in name)
    fields = {key: value for key, value in as_data(part).items() if key not in _LAYOUT}
    match part:
        case Headline(mark):
            fields["mark"] = {"word": mark.word, "meaning": mark.meaning, "emoji": mark.emoji}
        case Addressees(people):
            fields["people"] = [person.name for person in people]
        case _:
            pass
    return {"part": kind.removeprefix("_"), **fields}
