"""Webhooks of pagers: their proof of origin, and their content. Pure.

PagerDuty signs the body with each of its secrets (`X-PagerDuty-Signature`):
https://developer.pagerduty.com/docs/verifying-signatures. Grafana OnCall signs nothing and repeats
the header `Authorization` of the webhook:
https://grafana.com/docs/oncall/latest/configure/integrations/outgoing-webhooks/.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from draftsman_bots.pagers.alert import question_of
from draftsman_bots.pagers.records.pager_event import PagerEvent

MAX_ID: Final = 300
"""Maximum characters of an id; those of both services are far shorter."""
_PAGERDUTY: Final = {
    "incident.acknowledged": "acknowledged",
    "incident.resolved": "resolved",
    "incident.unacknowledged": "reopened",
    "incident.reopened": "reopened",
}
_GRAFANA: Final = {
    "acknowledge": "acknowledged",
    "resolve": "resolved",
    "unacknowledge": "reopened",
    "unresolve": "reopened",
}


def is_genuine(kind: str, secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether the pager sent the body, compared in constant time."""
    if not secret:
        return False
    if kind != "pagerduty":
        token = headers.get("authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(token.encode(errors="replace"), secret.encode())
    expected = "v1=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    signatures = headers.get("x-pagerduty-signature", "").split(",")
    matches = [
        hmac.compare_digest(item.strip().encode(errors="replace"), expected.encode())
        for item in signatures
    ]
    return any(matches)


def content(pager: str, kind: str, document: dict[str, Any]) -> PagerEvent | None:
    """Return the event of a genuine webhook; None if it is none of a question's alert."""
    event = _fields(document.get("event"))
    if kind == "pagerduty":
        return _pagerduty(pager, event)
    return _grafana(pager, event, document)


def _pagerduty(pager: str, event: dict[str, Any]) -> PagerEvent | None:
    agent = _fields(event.get("agent"))
    is_person = agent.get("type") == "user_reference"
    return _event(
        pager=pager,
        id=event.get("id"),
        key=_fields(event.get("data")).get("incident_key"),
        kind=_PAGERDUTY.get(_text(event.get("event_type"))),
        at=event.get("occurred_at"),
        users=[agent.get("id")] if is_person else [],
        name=agent.get("summary"),
    )


def _grafana(pager: str, event: dict[str, Any], document: dict[str, Any]) -> PagerEvent | None:
    user = _fields(document.get("user"))
    at = event.get("time")
    type = _text(event.get("type"))
    return _event(
        pager=pager,
        id=f"{document.get('alert_group_id')}:{type}:{at}",
        key=_fields(document.get("alert_payload")).get("alert_uid"),
        kind=_GRAFANA.get(type),
        at=at,
        users=[user.get("id"), user.get("email")],
        name=user.get("username"),
    )


def _event(
    pager: str, id: Any, key: Any, kind: str | None, at: Any, users: list[Any], name: Any
) -> PagerEvent | None:
    alert = question_of(_text(key))
    moment = _moment(_text(at))
    id = _text(id)
    if kind is None or alert is None or moment is None or not 0 < len(id) <= MAX_ID:
        return None
    user_names = tuple(text.casefold() for user in users if (text := _text(user)))
    return PagerEvent(pager, id, *alert, kind, moment, user_names, _text(name))


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def _fields(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    """Return a text that the database can store, else an empty one."""
    return value if isinstance(value, str) and "\x00" not in value else ""
