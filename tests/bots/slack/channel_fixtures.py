"""Helpers for tests of the Slack channel: messages, and their visible text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from draftsman.deliveries.delivery import DeliveryKind, Message
from draftsman.people.policy import Person
from draftsman_bots.slack.deliveries.channel import SlackChannel, client
from draftsman_testing.channel import samples
from draftsman_testing.slack import FakeSlack

Json = dict[str, Any]


def slack_channel(slack: FakeSlack, timeout: float = 5.0) -> SlackChannel:
    """Return the bot's channel in this Slack."""
    return SlackChannel(client(slack.bot_token, slack.api_url, timeout), timeout=timeout)


def message(kind: DeliveryKind, target: str, /, **fields: Any) -> Message:
    """Return a message of D-7; `subject_…` sets fields of its job."""
    about = {
        name.removeprefix("subject_"): fields.pop(name)
        for name in list(fields)
        if name.startswith("subject_")
    }
    created = samples.message(kind, target=target, **fields)
    return replace(created, subject=replace(created.subject, **about))


def person(name: str, account: str | None = None) -> Person:
    """Return a person with or without a Slack id."""
    return Person(name, frozenset({"approver"}), {"slack": account} if account else {})


def texts(reply: Any) -> Iterator[str]:
    """Yield every text of a message or a part of it, in order."""
    if isinstance(reply, dict):
        if reply.get("type") in ("mrkdwn", "plain_text"):
            yield reply["text"]
        for value in reply.values():
            yield from texts(value)
    elif isinstance(reply, list):
        for value in reply:
            yield from texts(value)


def shown(reply: Json) -> str:
    """Return all visible text of a message's blocks."""
    return "\n".join(texts(reply.get("blocks", [])))


def answer_rows(blocks: list[Json]) -> list[Json]:
    """Return the rows of controls, without those that acknowledge, snooze and delegate."""
    rows = [block for block in blocks if block["type"] == "actions"]
    return [row for row in rows if not str(row.get("block_id")).startswith("attention:")]


def actionable(reply: Json) -> list[str]:
    """Return the action ids of these controls."""
    rows = answer_rows(reply.get("blocks", []))
    return [element["action_id"] for row in rows for element in row["elements"]]
