"""Events about the app itself, which need neither a listener nor the database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.transport import acknowledgments
from draftsman_bots.slack.transport.acknowledgments import Acknowledgment
from draftsman_bots.slack.transport.installation import INSTALLATION
from draftsman_bots.slack.transport.payload_kind import PayloadKind

LOST_EVENTS: Final = {
    "app_uninstalled": "the app was uninstalled from the workspace: reinstall it",
    "tokens_revoked": "Slack revoked draftsman's tokens: reinstall the app and set the new token",
}
"""Events after which nothing can be posted; jobs and deliveries are kept."""
RATE_LIMITED: Final = "rate_limited"
RATE_LIMITED_TEXT: Final = "Slack is rate limiting events: over 30,000 in an hour"
NOTE_SECONDS: Final = 180.0
"""Slack repeats the event every minute; the note ends this many seconds after the last."""
MAX_LENGTH: Final = 300
"""Characters of a challenge that are returned."""


@dataclass(slots=True)
class Signals:
    """Callbacks for events about the app."""

    on_lost: Callable[[str], None] = lambda _: None
    on_rate_limit: Callable[[], None] = lambda: None


def answer_app_event(
    kind: PayloadKind, body: Mapping[str, Any], health: BotHealth, signals: Signals
) -> Acknowledgment | None:
    """Return the acknowledgment, or None if the event is for a listener."""
    if kind is PayloadKind.URL_VERIFICATION:
        challenge = body.get("challenge")
        return Acknowledgment(
            "done", body=challenge[:MAX_LENGTH] if isinstance(challenge, str) else ""
        )
    if kind is PayloadKind.SSL_CHECK:
        return Acknowledgment("done")
    if kind is PayloadKind.RATE_LIMITED:
        health.note(RATE_LIMITED, RATE_LIMITED_TEXT, seconds=NOTE_SECONDS)
        signals.on_rate_limit()
        return Acknowledgment("done")
    if kind is PayloadKind.OTHER:
        return acknowledgments.ignored()
    if kind is PayloadKind.EVENT and (text := LOST_EVENTS.get(body["event"]["type"])) is not None:
        if _concerns_the_bot(body["event"]):
            health.problem(INSTALLATION, text)
            signals.on_lost(text)
        return Acknowledgment("done")
    return None


def _concerns_the_bot(event: Mapping[str, Any]) -> bool:
    """Return whether the bot's token was revoked, and not a user's."""
    tokens = event.get("tokens")
    return not isinstance(tokens, dict) or bool(tokens.get("bot")) or "oauth" not in tokens
