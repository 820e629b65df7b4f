"""Acknowledgments of Slack's requests, by kind: they carry the message shown at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from draftsman_bots.slack.deliveries.mrkdwn import escape_truncated
from draftsman_bots.slack.transport.payload_kind import PayloadKind

RETRY_LATER: Final = (
    "draftsman could not reach its database in time and rolled the change back. Please try again;"
    " if it was made after all, you get a message."
)
IN_DOUBT: Final = (
    "draftsman's database did not respond in time, so it is unknown whether this was done. A new"
    " job is announced within moments: check before you try again. If you repeat a request within"
    " a minute, draftsman reports the duplicate."
)
INTERNAL_ERROR: Final = "Internal error in draftsman. Its log has the details."
NO_RETRY: Final = "x-slack-no-retry"
"""The header that tells Slack not to retry a request whose status is not 200."""


@dataclass(frozen=True, slots=True)
class Acknowledgment:
    """The response over HTTP; over Socket Mode it is sent only if it is `final`."""

    outcome: str
    status: int = 200
    body: Mapping[str, Any] | str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    ephemeral_text: str = ""
    """A message that the acknowledgment cannot show: sent to the user separately."""

    @property
    def final(self) -> bool:
        """Whether Slack need not send the request again."""
        return self.status < 500 or NO_RETRY in self.headers

    @property
    def text(self) -> str:
        """The body as it is sent by HTTP."""
        return self.body if isinstance(self.body, str) else json.dumps(self.body)


def ignored() -> Acknowledgment:
    """Acknowledge a payload that has no listener."""
    return Acknowledgment("ignored")


def retry_later(
    kind: PayloadKind, body: Mapping[str, Any], text: str = RETRY_LATER
) -> Acknowledgment:
    """Respond to a request that failed and may succeed when Slack or the user repeats it."""
    return _visible_response(kind, body, "retry", text) or Acknowledgment(
        "retry", 503, ephemeral_text=_separate_text(kind, text)
    )


def rejected(kind: PayloadKind, body: Mapping[str, Any], text: str) -> Acknowledgment:
    """Acknowledge a request that would be rejected again."""
    return _visible_response(kind, body, "rejected", text) or Acknowledgment(
        "rejected", ephemeral_text=_separate_text(kind, text)
    )


def internal_error(kind: PayloadKind, body: Mapping[str, Any]) -> Acknowledgment:
    """Respond to an unexpected error, without retries by Slack."""
    response = _visible_response(kind, body, "error", INTERNAL_ERROR)
    no_retry = {NO_RETRY: "1"}
    text = _separate_text(kind, INTERNAL_ERROR)
    return response or Acknowledgment("error", 500, headers=no_retry, ephemeral_text=text)


def _visible_response(
    kind: PayloadKind, body: Mapping[str, Any], outcome: str, text: str
) -> Acknowledgment | None:
    """Return a response that shows the text to the user, if the kind of request has a reply."""
    if kind is PayloadKind.COMMAND:
        message = {"response_type": "ephemeral", "text": escape_truncated(text)}
        return Acknowledgment(outcome, body=message)
    if kind is PayloadKind.OPTIONS:
        return Acknowledgment(outcome, body={"options": []})
    if kind is PayloadKind.VIEW and (block := _first_input(body)) is not None:
        return Acknowledgment(outcome, body={"response_action": "errors", "errors": {block: text}})
    return None


def _separate_text(kind: PayloadKind, text: str) -> str:
    """Return the text for the kinds whose response can neither show it nor be retried."""
    return text if kind in (PayloadKind.ACTION, PayloadKind.SHORTCUT) else ""


def _first_input(body: Mapping[str, Any]) -> str | None:
    """Return the block id of the modal's first input: an error shown there keeps the input."""
    try:
        blocks = [block for block in body["view"]["blocks"] if block["type"] == "input"]
        block_id = blocks[0]["block_id"] if blocks else None
    except (KeyError, TypeError):
        return None
    return block_id if isinstance(block_id, str) else None
