"""Targets: where the messages of a job go, as people write them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from draftsman.domain.delivery import ChannelName, DeliveryKind
from draftsman.domain.invocation import Invocation
from draftsman.errors import UsageError

FORMS: Final = "log, webhook:NAME, slack:CHANNEL or trello:CARD"
"""What is offered: the places that a worker delivers to."""
NONE: Final = "none"
"""What a request names that wants nobody told, the defaults neither."""
EVERYTHING: Final = tuple(kind for kind in DeliveryKind if kind is not DeliveryKind.QUESTION_CLOSED)
LONGEST: Final = 500
_OBJECT: Final = re.compile(r"[0-9a-f]{24}")
_TS: Final = re.compile(r"[0-9]{1,20}\.[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class Target:
    """One place, and what it wants to hear; `outcomes` are those whose result it wants, None all.

    Who was asked a question always learns how it ended.
    """

    channel: ChannelName
    target: str
    thread: str | None = None
    kinds: tuple[DeliveryKind, ...] = EVERYTHING
    outcomes: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """How people write it."""
        if self.channel is ChannelName.LOG:
            return str(self.channel)
        return f"{self.channel}:{self.target}" + (f"/{self.thread}" if self.thread else "")

    def as_json(self) -> dict[str, Any]:
        """Return what the store takes."""
        return asdict(self)


def parse(text: str) -> Target:
    """Read `log`, `webhook:NAME`, `slack:C012/1700000000.1`, `trello:5f1e…`; raises UsageError."""
    channel, _, rest = text.strip().partition(":")
    target, _, thread = rest.partition("/")
    known = channel in ChannelName.__members__.values()
    if channel == ChannelName.LOG and not rest:
        return Target(ChannelName.LOG, "log")
    if not known or channel == ChannelName.LOG or not target or len(text) > LONGEST:
        raise UsageError(f"{text[:60]!r} is no target; give {FORMS}")
    if thread and channel != ChannelName.SLACK:
        raise UsageError(f"{text[:60]!r}: only slack has threads; give {FORMS}")
    if channel == ChannelName.SLACK:
        _check_slack(text, target, thread)
    if channel == ChannelName.TRELLO and not _OBJECT.fullmatch(target):
        raise UsageError(
            f"{text[:60]!r}: give the card by its id, 24 hexadecimal digits: it is the first `id`"
            " at the card's address with .json added"
        )
    return Target(ChannelName(channel), target, thread or None)


def _check_slack(text: str, target: str, thread: str) -> None:
    """Raise UsageError for a name, which may come to mean another channel, and for no thread."""
    if not target.isalnum() or not target.isascii():
        raise UsageError(
            f"{text[:60]!r}: give the channel by its id, C0…, which Slack shows at the end of"
            " 'View channel details', or a person by theirs, U0…"
        )
    if thread and not _TS.fullmatch(thread):
        raise UsageError(f"{text[:60]!r}: a thread is the ts of a message: 1700000000.000100")


@dataclass(frozen=True, slots=True)
class Targets:
    """Who is told of which request: by default, and webhooks of how any of them ends."""

    default: tuple[Target, ...] = ()
    hooks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The ends that each webhook of the configuration is told of."""

    def of(self, invocation: Invocation) -> list[Target]:
        """Return the targets of a request; raises UsageError for one that cannot be."""
        named = [parse(text) for text in invocation.notify if text != NONE]
        wanted = named if invocation.notify else list(self.default)
        for target in wanted:
            self.check(target)
        there = {target.name for target in wanted}
        for name, outcomes in self.hooks.items():
            hook = Target(ChannelName.WEBHOOK, name, None, (DeliveryKind.RESULT,), tuple(outcomes))
            if outcomes and hook.name not in there:
                wanted.append(hook)
        return wanted

    def check(self, target: Target) -> None:
        """Raise UsageError for a webhook that nobody configured."""
        if target.channel is ChannelName.WEBHOOK and target.target not in self.hooks:
            known = ", ".join(sorted(self.hooks)) or "none: add [webhooks.NAME]"
            raise UsageError(f"there is no webhook {target.target!r}; configured: {known}")
