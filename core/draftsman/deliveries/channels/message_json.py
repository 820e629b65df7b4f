"""JSON representation of a message, for programs. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from draftsman.deliveries.delivery import (
    NOT_SERVED,
    DeliveryKind,
    Message,
    Receipt,
    SendResult,
    Subject,
    Unconfirmed,
)
from draftsman.deliveries.documents.plain import how_to_answer, render_plain
from draftsman.deliveries.plain_text import resolution_text
from draftsman.errors import Failure
from draftsman.questions.question import Question

if TYPE_CHECKING:
    from draftsman.outbound.http_client import OutboundResponse
    from draftsman.outbound.timeouts import Timeouts
    from draftsman.settings.http import HttpSettings


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


# A message as an HTTP request, and the result that its response means.


ERROR_BODY_LIMIT: Final = 500
"""Bytes kept of an error response's body."""


async def post(
    http: HttpSettings,
    timeouts: Timeouts,
    url: str,
    headers: dict[str, str],
    body: bytes,
    *,
    reference: str,
    redact: Callable[[str], str] = str,
) -> SendResult:
    """Send a message; return a Receipt with `reference` for a status from 200 to 299.

    A failure after the message was sent, without a response, is Unconfirmed. `redact` removes
    secrets from the texts of failures.
    """
    from draftsman.outbound.http_client import HttpCall, HttpClient

    client = HttpClient(http, trusted=[url])
    call = HttpCall("POST", url, headers, body)
    sent = False
    refusal = None

    def mark_sent() -> None:
        nonlocal sent
        sent = True

    try:
        async with client.stream(call, timeouts, leaves=mark_sent) as response:
            if 200 <= response.status < 300:
                return Receipt(reference)
            refusal = _refusal(response, "")
            reply = (await response.beginning(ERROR_BODY_LIMIT)).decode("utf-8", "replace")
            return _refusal(response, redact(reply))
    except Failure as error:
        if refusal is not None:
            return refusal
        text = redact(str(error))
        if sent:
            return Unconfirmed(text)
        return error if text == str(error) else Failure(text, origin="http", code=error.code)


def not_served(text: str) -> Failure:
    """Return the failure of a message that another process may send."""
    return Failure(text, origin="http", code=NOT_SERVED, declared="TRANSIENT_INFRA")


def _refusal(response: OutboundResponse, body: str) -> Failure:
    from draftsman.outbound.http_client import retry_after

    text = body.strip()
    return Failure(
        f"HTTP {response.status}{f': {text}' if text else ''}",
        origin="http",
        http_status=response.status,
        retry_after=retry_after(response.headers),
    )
