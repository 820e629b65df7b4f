"""Kinds of payloads, and their required fields.

Bolt raises on a payload without them, and would respond with 500; Slack never sends such a payload.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from draftsman_bots.json_fields import mapping, nested, string


class PayloadKind(StrEnum):
    """Kinds of payloads; `other` is unknown."""

    EVENT = "event"
    COMMAND = "command"
    ACTION = "action"
    OPTIONS = "options"
    VIEW = "view"
    VIEW_CLOSED = "view_closed"
    SHORTCUT = "shortcut"
    RATE_LIMITED = "rate_limited"
    URL_VERIFICATION = "url_verification"
    SSL_CHECK = "ssl_check"
    OTHER = "other"


_TYPES: Final = {
    "event_callback": PayloadKind.EVENT,
    "block_actions": PayloadKind.ACTION,
    "interactive_message": PayloadKind.ACTION,
    "block_suggestion": PayloadKind.OPTIONS,
    "view_submission": PayloadKind.VIEW,
    "view_closed": PayloadKind.VIEW_CLOSED,
    "shortcut": PayloadKind.SHORTCUT,
    "message_action": PayloadKind.SHORTCUT,
    "app_rate_limited": PayloadKind.RATE_LIMITED,
    "url_verification": PayloadKind.URL_VERIFICATION,
}
_COMMAND: Final = ("command", "user_id", "channel_id")
_WITHOUT_FIELDS: Final = frozenset(
    {
        PayloadKind.RATE_LIMITED,
        PayloadKind.URL_VERIFICATION,
        PayloadKind.SSL_CHECK,
        PayloadKind.OTHER,
    }
)
"""Kinds without required fields."""


def kind_of(body: Mapping[str, Any]) -> PayloadKind:
    """Return the kind of a payload."""
    if isinstance(body.get("command"), str):
        return PayloadKind.COMMAND
    type_name = body.get("type")
    if isinstance(type_name, str):
        return _TYPES.get(type_name, PayloadKind.OTHER)
    return PayloadKind.SSL_CHECK if "ssl_check" in body else PayloadKind.OTHER


def missing_field(kind: PayloadKind, body: Mapping[str, Any]) -> str | None:
    """Return the first required field that is missing or unreadable, or None."""
    if kind in _WITHOUT_FIELDS:
        return None
    if kind is PayloadKind.COMMAND:
        return next((key for key in _COMMAND if not string(body, key)), None)
    if kind is PayloadKind.EVENT:
        if not isinstance(body.get("authorizations"), list | None):
            return "authorizations"
        return None if string(nested(body, "event"), "type") else "event.type"
    if not string(nested(body, "user"), "id"):
        return "user.id"
    if kind is PayloadKind.ACTION:
        return _actions(body.get("actions"))
    if kind in (PayloadKind.VIEW, PayloadKind.VIEW_CLOSED):
        view = nested(body, "view")
        return next((f"view.{key}" for key in ("id", "type") if not string(view, key)), None)
    if kind is PayloadKind.SHORTCUT and not string(body, "callback_id"):
        return "callback_id"
    return None


def _actions(actions: Any) -> str | None:
    if not (isinstance(actions, list) and actions):
        return "actions"
    names = (mapping(action).get("action_id") or mapping(action).get("name") for action in actions)
    return None if all(map(_name, names)) else "actions.action_id"


def _name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
