"""Notification targets of a job, and their notation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from draftsman.channels import LOG, WEBHOOK, ChannelName
from draftsman.channels.targets import parse_target
from draftsman.deliveries.delivery import DeliveryKind
from draftsman.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from draftsman.settings import Settings

NONE: Final = "none"
"""In a request: no notifications, not even to the default targets."""
ALL_KINDS: Final = tuple(kind for kind in DeliveryKind if kind is not DeliveryKind.QUESTION_CLOSED)


@dataclass(frozen=True, slots=True)
class Target:
    """A target with its kinds of messages; `outcomes` limits its results, None means all.

    A target that got a question always gets its resolution.
    """

    channel: ChannelName
    target: str
    thread: str | None = None
    kinds: tuple[DeliveryKind, ...] = ALL_KINDS
    outcomes: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """Notation of the target: `webhook:NAME`."""
        if self.channel == LOG:
            return self.channel
        return f"{self.channel}:{self.target}" + (f"/{self.thread}" if self.thread else "")

    def as_json(self) -> dict[str, Any]:
        """Return the fields for the database."""
        return {
            "channel": self.channel,
            "target": self.target,
            "thread": self.thread,
            "kinds": self.kinds,
            "outcomes": self.outcomes,
        }


@lru_cache(maxsize=256)  # a request from chat is parsed at each of its checks
def parse(text: str) -> Target:
    """Parse `log`, `webhook:NAME` or a target of a channel, `webhook:NAME`; raises UsageError."""
    return Target(*parse_target(text))


def parse_recipient(text: str) -> Target:
    """Parse a target of a ladder, perhaps only for critical questions; raises UsageError."""
    return Target(*parse_target(text, critical=True))


@dataclass(frozen=True, slots=True)
class Targets:
    """The configured targets: the defaults, and webhooks for outcomes of any job."""

    default: tuple[Target, ...] = ()
    hooks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Outcomes that each configured webhook is notified of."""
    fallback: Target | None = None
    """Receives dead letters that no other target receives."""

    def of(self, notify: Sequence[str]) -> list[Target]:
        """Return the targets of a request with these texts; raises UsageError for an invalid one.

        Without a text, they are the default targets.
        """
        if not (notify or self.default or self.hooks):
            return []
        named = [parse(text) for text in notify if text != NONE]
        targets = named if notify else list(self.default)
        for target in targets:
            self.check(target)
        names = {target.name for target in targets}
        for name, outcomes in self.hooks.items():
            hook = Target(WEBHOOK, name, None, (DeliveryKind.RESULT,), tuple(outcomes))
            if outcomes and hook.name not in names:
                targets.append(hook)
        return targets

    def check(self, target: Target) -> None:
        """Raise UsageError for a webhook that is not configured."""
        if target.channel == WEBHOOK and target.target not in self.hooks:
            names = ", ".join(sorted(self.hooks)) or "none: add [webhooks.NAME]"
            raise UsageError(f"unknown webhook {target.target!r}; configured: {names}")


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A row of `job_targets`."""

    job: int
    ordinal: int
    channel: ChannelName
    target: str
    thread: str | None
    kinds: list[str]
    outcomes: list[str] | None
    created_at: datetime


def configured_targets(settings: Settings) -> Targets:
    """Return the configured targets; raises ConfigError."""
    notifications = settings.notifications
    try:
        default = tuple(parse(text) for text in notifications.targets)
        fallback = None if notifications.fallback == NONE else parse(notifications.fallback)
        targets = Targets(
            default=default,
            hooks={name: hook.on for name, hook in settings.webhooks.items()},
            fallback=fallback,
        )
        for target in (*default, *([fallback] if fallback else ())):
            targets.check(target)
    except UsageError as error:
        raise ConfigError(f"notifications: {error}") from None
    return targets


def rules_target(settings: Settings) -> Target | None:
    """Return the target of messages about proposed rules; raises ConfigError."""
    if settings.rules.notify is None:
        return None
    try:
        target = parse(settings.rules.notify)
        configured_targets(settings).check(target)
    except UsageError as error:
        raise ConfigError(f"rules: notify: {error}") from None
    return target
