"""Targets: where the messages of a job go, as people write them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from draftsman.domain.delivery import ChannelName, DeliveryKind
from draftsman.errors import UsageError

FORMS: Final = "log, webhook:NAME, slack:CHANNEL, slack:CHANNEL/THREAD, trello:CARD, or none"
NONE: Final = "none"
"""What a request names that wants nobody told, the defaults neither."""
EVERYTHING: Final = tuple(kind for kind in DeliveryKind if kind is not DeliveryKind.SETTLE)
LONGEST: Final = 500


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
    """Read `log`, `webhook:NAME`, `slack:C012/1700000000.1`, `trello:CARD`; raises UsageError."""
    channel, _, rest = text.strip().partition(":")
    target, _, thread = rest.partition("/")
    known = channel in ChannelName.__members__.values()
    if channel == ChannelName.LOG and not rest:
        return Target(ChannelName.LOG, "log")
    if not known or channel == ChannelName.LOG or not target or len(text) > LONGEST:
        raise UsageError(f"{text[:60]!r} is no target; give {FORMS}")
    if thread and channel != ChannelName.SLACK:
        raise UsageError(f"{text[:60]!r}: only slack has threads; give {FORMS}")
    return Target(ChannelName(channel), target, thread or None)
