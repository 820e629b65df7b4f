"""What Slack says about the app itself, which needs no listener and no database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from draftsman_bots.slack import replies
from draftsman_bots.slack.account import INSTALLATION
from draftsman_bots.slack.health import Health
from draftsman_bots.slack.replies import Reply
from draftsman_bots.slack.shape import Kind

LOST: Final = {
    "app_uninstalled": "draftsman was removed from the workspace: install the app again",
    "tokens_revoked": "Slack revoked tokens of draftsman: install the app again, set the new token",
}
"""Events after which nothing can be posted any more; jobs and deliveries are kept."""
LIMITED: Final = "rate_limited"
HELD: Final = "Slack holds events back: over 30,000 came within an hour"
FADES: Final = 180.0
"""Seconds without another word after which Slack holds nothing back: it says so every minute."""
LONGEST: Final = 300
"""Characters of a challenge that are sent back."""


@dataclass(slots=True)
class Signals:
    """Who is told what Slack says about the app."""

    lost: Callable[[str], None] = lambda _: None
    limited: Callable[[], None] = lambda: None


def answer(kind: Kind, body: Mapping[str, Any], health: Health, signals: Signals) -> Reply | None:
    """Return the answer, or None for what a listener has to see."""
    if kind is Kind.URL_VERIFICATION:
        challenge = body.get("challenge")
        return Reply("done", body=challenge[:LONGEST] if isinstance(challenge, str) else "")
    if kind is Kind.SSL_CHECK:
        return Reply("done")
    if kind is Kind.RATE_LIMITED:
        health.note(LIMITED, HELD, seconds=FADES)
        signals.limited()
        return Reply("done")
    if kind is Kind.OTHER:
        return replies.ignored()
    if kind is Kind.EVENT and (text := LOST.get(body["event"]["type"])) is not None:
        if _concerns_the_bot(body["event"]):
            health.problem(INSTALLATION, text)
            signals.lost(text)
        return Reply("done")
    return None


def _concerns_the_bot(event: Mapping[str, Any]) -> bool:
    """Return whether what was revoked is the bot's token, and not a person's."""
    tokens = event.get("tokens")
    return not isinstance(tokens, dict) or bool(tokens.get("bot")) or "oauth" not in tokens
