"""Kinds of Slack's payloads."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final


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


def kind_of(body: Mapping[str, Any]) -> PayloadKind:
    """Return the kind of a payload."""
    if isinstance(body.get("command"), str):
        return PayloadKind.COMMAND
    type_name = body.get("type")
    if isinstance(type_name, str):
        return _TYPES.get(type_name, PayloadKind.OTHER)
    return PayloadKind.SSL_CHECK if "ssl_check" in body else PayloadKind.OTHER
