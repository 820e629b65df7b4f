"""Files for content that is too long for a chat message. Pure."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from draftsman.agent_runs.changes.diff import is_diff
from draftsman.channels import registry
from draftsman.deliveries.delivery import (
    TARGET_GONE,
    ClaimedDelivery,
    DeliveryKind,
    DeliveryOutcome,
    DeliveryStatus,
    DeliveryTransition,
    Message,
)
from draftsman.deliveries.documents.builder import build_document
from draftsman.deliveries.documents.document import InFile
from draftsman.deliveries.documents.plain import render_plain
from draftsman.deliveries.result_text import raw_data
from draftsman.errors import Failure
from draftsman.ids import job_name


def overflow_files(message: Message) -> list[dict[str, Any]]:
    """Return the payloads of the files that complete a message."""
    if not any(isinstance(part, InFile) for part in build_document(message)):
        return []
    question = message.question
    if message.kind is DeliveryKind.RESULT:
        return [{"whole": "result", "name": f"{message.subject.name}-result.md"}]
    if message.kind is DeliveryKind.QUESTION and question is not None:
        suffix = "diff" if is_diff(question.context_snippet or "") else "txt"
        return [{"whole": "context", "name": f"{question.name.replace('/', '-')}.{suffix}"}]
    if message.kind is DeliveryKind.NOTICE:
        text = str((message.payload or {}).get("text", ""))
        return [{"text": text, "name": f"{message.subject.name}-{message.seq}.txt"}]
    return []


def file_content(message: Message) -> str | None:
    """Return the content of a file of `overflow_files`; None for another file."""
    payload = message.payload or {}
    if isinstance(payload.get("text"), str):
        return str(payload["text"])
    if payload.get("whole") == "context" and message.question is not None:
        return message.question.context_snippet or ""
    if payload.get("whole") == "result":
        return _report(replace(message, kind=DeliveryKind.RESULT))
    return None


def refused_file(
    item: ClaimedDelivery, outcome: DeliveryOutcome, transition: DeliveryTransition
) -> str | None:
    """Return the warning that a chat refused a file; None where the chat gets no message either."""
    is_dead = transition.status is DeliveryStatus.DEAD_LETTER and item.kind is DeliveryKind.FILE
    is_gone = isinstance(outcome, Failure) and outcome.code == TARGET_GONE
    if not is_dead or is_gone or item.channel not in registry.taking_answers():
        return None
    text = f"File not attached: {transition.error or item.payload.get('name', 'file')}."
    if "artifact" in item.payload:
        command = f"draftsman artifacts get {job_name(item.job)} {item.payload['name']}"
        text += f" To download it: {command}"
    return text


def _report(message: Message) -> str:
    """Return a result with the raw data that messages omit."""
    if not (data := _data(message)):
        return render_plain(message)
    formatted = json.dumps(data, ensure_ascii=False, indent=2)
    return f"{render_plain(message)}\n\n```json\n{formatted}\n```\n"


def _data(message: Message) -> dict[str, Any]:
    return raw_data(message.subject.result or {})
