"""What Slack is answered, by kind of request: it is the one word that a person sees at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from draftsman_bots.slack.shape import Kind
from draftsman_bots.slack.text import escaped

LATER: Final = (
    "draftsman could not reach its database in time, and took back what it had begun. Please try"
    " again; should the same be there after all, you are told."
)
IN_DOUBT: Final = (
    "draftsman's database did not answer in time: this may be done or not. A job that was made"
    " shows itself in a moment, so look before you try again; should you ask for the same within a"
    " minute, you are told."
)
BROKEN: Final = "That did not work, and it is draftsman's fault: its log says why."
NO_RETRY: Final = "x-slack-no-retry"
"""The header with which Slack does not repeat what was not answered with 200."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: HTTP as it is; through a socket only one that is `final` is acknowledged."""

    outcome: str
    status: int = 200
    body: Mapping[str, Any] | str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    untold: str = ""
    """Words for whoever did it that Slack does not show with the answer: said beside it."""

    @property
    def final(self) -> bool:
        """Whether Slack need not send it again."""
        return self.status < 500 or NO_RETRY in self.headers

    @property
    def text(self) -> str:
        """The body as it is sent by HTTP."""
        return self.body if isinstance(self.body, str) else json.dumps(self.body)


def ignored() -> Reply:
    """Answer what is nobody's business here."""
    return Reply("ignored")


def later(kind: Kind, body: Mapping[str, Any], text: str = LATER) -> Reply:
    """Answer what was not done and may work when it is repeated, by Slack or by the person."""
    return _told(kind, body, "later", text) or Reply("later", 503, untold=_beside(kind, text))


def refused(kind: Kind, body: Mapping[str, Any], text: str) -> Reply:
    """Answer what will be refused however often it is repeated."""
    return _told(kind, body, "refused", text) or Reply("refused", untold=_beside(kind, text))


def broken(kind: Kind, body: Mapping[str, Any]) -> Reply:
    """Answer what fails for a reason that nobody foresaw, and must not come back three times."""
    found = _told(kind, body, "broken", BROKEN)
    no_retry, untold = {NO_RETRY: "1"}, _beside(kind, BROKEN)
    return found or Reply("broken", 500, headers=no_retry, untold=untold)


def _told(kind: Kind, body: Mapping[str, Any], outcome: str, text: str) -> Reply | None:
    """Return the answer in which the person reads the text, where the kind has one."""
    if kind is Kind.COMMAND:
        said = {"response_type": "ephemeral", "text": escaped(text)}
        return Reply(outcome, body=said)
    if kind is Kind.OPTIONS:
        return Reply(outcome, body={"options": []})
    if kind is Kind.VIEW and (block := _first_input(body)) is not None:
        return Reply(outcome, body={"response_action": "errors", "errors": {block: text}})
    return None


def _beside(kind: Kind, text: str) -> str:
    """Return the words where a person waits for them, and Slack neither shows nor repeats."""
    return text if kind in (Kind.ACTION, Kind.SHORTCUT) else ""


def _first_input(body: Mapping[str, Any]) -> str | None:
    """Return the input under which a modal shows an error, so that what was typed stays."""
    try:
        blocks = [one for one in body["view"]["blocks"] if one["type"] == "input"]
        found = blocks[0]["block_id"] if blocks else None
    except (KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None
