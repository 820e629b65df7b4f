"""Channels that record the messages of a simulation."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from draftsman.channels import ChannelName
from draftsman.deliveries.channel import Channel
from draftsman.deliveries.delivery import (
    DeliveryKind,
    File,
    Message,
    Receipt,
    SendResult,
)
from draftsman.deliveries.documents.plain import render_plain
from draftsman.errors import Failure


@dataclass(frozen=True)
class Sent:
    """A message that reached a person or a pager."""

    at: datetime
    target: str
    kind: DeliveryKind
    question: str
    """Name of the question; empty for a digest."""
    critical: bool
    text: str


@dataclass
class RecordingChannel(Channel):
    """A Slack or a pager that records the messages; `now` is the time of the simulation."""

    now: datetime
    name: ChannelName = "slack"
    messages: list[Sent] = field(default_factory=list)
    markers: Counter[str] = field(default_factory=Counter)

    @property
    def questions(self) -> list[Sent]:
        """The questions."""
        return [item for item in self.messages if item.kind is DeliveryKind.QUESTION]

    def bucket(self, message: Message, failure: Failure) -> str:
        return "slack"

    async def send(self, message: Message) -> SendResult:
        self.markers[message.marker] += 1
        self._record(message)
        return Receipt(message.marker)

    def _record(self, message: Message) -> None:
        question = message.question
        text = render_plain(message)
        name, critical = (question.name, question.critical) if question else ("", False)
        self.messages.append(Sent(self.now, message.target, message.kind, name, critical, text))

    async def edit(self, message: Message) -> SendResult:
        if self.name == "pager":
            self._record(message)
        return Receipt(message.edits or "")

    async def upload(self, message: Message, file: File) -> SendResult:
        return Receipt(message.marker)
