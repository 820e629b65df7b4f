"""The channel `pager`: alerts for critical questions, as PagerDuty and Grafana OnCall take them.

A question is a single alert: each message about it has the same deduplication key, so that a
repeated message changes nothing. The question triggers the alert, an acknowledgment acknowledges
it, and the end of the question resolves it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from draftsman.deliveries.channel import Channel
from draftsman.deliveries.channels.http_post import not_served, post
from draftsman.deliveries.channels.usable_secrets import UsableSecrets
from draftsman.deliveries.delivery import (
    DeliveryKind,
    File,
    Message,
    Receipt,
    SendResult,
)
from draftsman.deliveries.documents.plain import how_to_answer
from draftsman.deliveries.question_text import closed_text
from draftsman.errors import Failure
from draftsman.formats.invisible import escape_invisible, one_line
from draftsman.formats.truncation import truncate
from draftsman.outbound import secret_values
from draftsman.outbound.timeouts import Timeouts
from draftsman.questions.question import Question
from draftsman.settings import Settings
from draftsman.settings.http import HttpSettings
from draftsman_bots.pagers import alert
from draftsman_bots.pagers.settings import PagerSettings

MAX_SUMMARY: Final = 1024
"""Maximum characters of a summary, by the Events API v2 of PagerDuty."""
_ACTIONS: Final = {
    DeliveryKind.QUESTION: "trigger",
    DeliveryKind.REMINDER: "trigger",
    DeliveryKind.NOTICE: "acknowledge",
    DeliveryKind.QUESTION_CLOSED: "resolve",
}
_STATES: Final = {"trigger": "alerting", "acknowledge": "acknowledged", "resolve": "ok"}
"""States of a formatted webhook of Grafana OnCall by action of PagerDuty."""


class PagerChannel(Channel):
    """Posts to the configured pagers; `timeout` of a call is in seconds."""

    name = "pager"

    def __init__(
        self, pagers: Mapping[str, PagerSettings], http: HttpSettings, timeout: float
    ) -> None:
        self._pagers = pagers
        self._http = http
        self._timeouts = Timeouts(call=timeout, connect=timeout)
        self._usable = UsableSecrets(pagers, _read_key)

    def served(self) -> Sequence[str]:
        """Return the pagers whose secret this process can read."""
        return self._usable.names()

    def problems(self) -> Sequence[str]:
        """Return why the others cannot be used."""
        return self._usable.problems()

    async def send(self, message: Message) -> SendResult:
        """Trigger or acknowledge the alert of a question."""
        return await self._post(message)

    async def edit(self, message: Message) -> SendResult:
        """Resolve the alert of a closed question."""
        return await self._post(message)

    async def upload(self, message: Message, file: File) -> SendResult:
        """Send nothing: an alert has no files."""
        return Receipt(dedup_key(message))

    async def _post(self, message: Message) -> SendResult:
        pager = self._pagers.get(message.target)
        question = message.question
        action = _ACTIONS.get(message.kind)
        if pager is None:
            return not_served(f"pager {message.target!r} is not configured in this process")
        if question is None or action is None:
            return Receipt(dedup_key(message))
        try:
            secret = _read_key(pager, message.target)
        except Failure as error:
            return not_served(str(error))
        if pager.format == "pagerduty":
            document = _pagerduty(message, question, action, secret)
            return await self._exchange(pager.url, document, secret)
        return await self._exchange(secret, _grafana(message, question, action), secret)

    async def _exchange(self, url: str, document: dict[str, Any], secret: str) -> SendResult:
        body = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
        headers = {"content-type": "application/json"}
        key = str(document.get("dedup_key") or document.get("alert_uid"))
        path = urlsplit(secret).path  # a reply may quote it without its host

        def redact(text: str) -> str:
            return secret_values.redact_values(text, secret, path)

        return await post(
            self._http, self._timeouts, url, headers, body, reference=key, redact=redact
        )


def worker_channel(settings: Settings) -> PagerChannel:
    """Return the channel of a worker."""
    pagers = PagerSettings.of(settings)
    return PagerChannel(pagers, settings.http, settings.notifications.timeout)


def _read_key(pager: PagerSettings, name: str) -> str:
    """Return the secret of a pager; raises MissingSecret."""
    return secret_values.read_secret(pager.secret, f"pager {name!r}")


def dedup_key(message: Message) -> str:
    """Return the key of the alert of a question, unique over all databases."""
    number = message.question.ordinal if message.question is not None else 0
    return alert.dedup_key(message.subject.id, number)


def _pagerduty(message: Message, question: Question, action: str, key: str) -> dict[str, Any]:
    event: dict[str, Any] = {
        "routing_key": key,
        "event_action": action,
        "dedup_key": dedup_key(message),
    }
    if action != "trigger":
        return event
    subject = message.subject
    title = one_line(subject.title)
    text = escape_invisible(question.text)
    details = {"job": subject.name, "title": title, "question": text}
    details |= {"repository": subject.repo} if subject.repo else {}
    details |= {"requester": subject.invoker}
    details |= {"answer": how_to_answer(question)}
    payload = {
        "summary": _summary(message, question),
        "source": "draftsman",
        "severity": "critical",
        "timestamp": question.asked_at.isoformat(),
        "component": subject.repo or subject.type,
        "class": str(question.kind),
        "custom_details": details,
    }
    links = [{"href": subject.url, "text": title}] if subject.url else []
    return event | {"payload": payload, "client": "draftsman", "links": links}


def _grafana(message: Message, question: Question, action: str) -> dict[str, Any]:
    text = f"{question.text}\n\n{how_to_answer(question)}"
    if action == "acknowledge":
        text = f"acknowledged by {(message.payload or {}).get('acknowledged_by', '')}"
    elif action == "resolve":
        text = closed_text(question)
    document = {
        "alert_uid": dedup_key(message),
        "title": _summary(message, question),
        "state": _STATES[action],
        "message": escape_invisible(text),
    }
    url = message.subject.url
    return document | ({"link_to_upstream_details": url} if url else {})


def _summary(message: Message, question: Question) -> str:
    text = f"{question.name} {message.subject.title}: {question.text}"
    return truncate(one_line(text), MAX_SUMMARY)
