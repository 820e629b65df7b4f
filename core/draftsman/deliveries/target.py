"""Notification targets of a job, and their notation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from draftsman.deliveries.delivery import ChannelName, DeliveryKind
from draftsman.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from draftsman.settings import Settings

FORMS: Final = "log, webhook:NAME, slack:CHANNEL, trello:CARD or forge:NAME/OWNER/REPO#NUMBER"
"""The notations of a target, for error messages."""
NONE: Final = "none"
"""In a request: no notifications, not even to the default targets."""
ALL_KINDS: Final = tuple(kind for kind in DeliveryKind if kind is not DeliveryKind.QUESTION_CLOSED)
MAX_LENGTH: Final = 500
_OBJECT: Final = re.compile(r"[0-9a-f]{24}")
_ISSUE: Final = re.compile(
    r"(?P<forge>[A-Za-z0-9_-]{1,100})/(?P<path>[\w.-]+(?:/[\w.-]+)+)(?P<sign>[#!])"
    r"(?P<number>[1-9][0-9]{0,8})",
    re.ASCII,
)
_TS: Final = re.compile(r"[0-9]{1,20}\.[0-9]{1,10}")


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
        """Notation of the target: `slack:C012`."""
        if self.channel == ChannelName.LOG:
            return str(self.channel)
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
    """Parse `log`, `webhook:NAME`, `slack:C012/1700000000.1`, `trello:5f1e…`, `forge:…`.

    Raises UsageError.
    """
    channel, _, address = text.strip().partition(":")
    target = address
    thread = ""
    if channel != ChannelName.FORGE:
        target, _, thread = address.partition("/")
    is_valid_channel = channel in ChannelName.__members__.values() and channel != ChannelName.PAGER
    if channel == ChannelName.LOG and not address:
        return Target(ChannelName.LOG, "log")
    if not is_valid_channel or channel == ChannelName.LOG or not target or len(text) > MAX_LENGTH:
        raise UsageError(f"{text[:60]!r} is not a target; use {FORMS}")
    if thread and channel != ChannelName.SLACK:
        raise UsageError(f"{text[:60]!r}: only Slack has threads; use {FORMS}")
    if channel == ChannelName.SLACK:
        _check_slack(text, target, thread)
    if channel == ChannelName.TRELLO and not _OBJECT.fullmatch(target):
        raise UsageError(
            f"{text[:60]!r}: use the card's id, 24 hexadecimal digits: the first `id` at the"
            " card's URL with .json appended"
        )
    if channel == ChannelName.FORGE:
        target = IssueTarget.of(target).target
    return Target(ChannelName(channel), target, thread or None)


def parse_recipient(text: str) -> Target:
    """Parse a target of a ladder, which may also be `pager:NAME`; raises UsageError."""
    channel, _, name = text.strip().partition(":")
    if channel == ChannelName.PAGER and name and len(text) <= MAX_LENGTH:
        return Target(ChannelName.PAGER, name)
    return parse(text)


@dataclass(frozen=True, slots=True)
class IssueTarget:
    """An issue or a pull request: `github/acme/pay#12`; of GitLab, `!12` is a merge request."""

    forge: str
    """Table of the forge in the configuration."""
    path: str
    """Repository: `acme/pay`, in lower case."""
    number: int
    is_pull: bool = False
    """Whether it is a merge request of GitLab, which counts issues separately."""

    @property
    def target(self) -> str:
        """Notation of the target, without its channel."""
        return f"{self.forge}/{self.path}{'!' if self.is_pull else '#'}{self.number}"

    @classmethod
    def of(cls, text: str) -> IssueTarget:
        """Parse a target; raises UsageError."""
        if (match := _ISSUE.fullmatch(text)) is None:
            raise UsageError(
                f"{text[:60]!r}: use the table of the forge, the repository and the number of the"
                " issue or pull request, such as forge:github/acme/pay#12; for a merge request of"
                " GitLab, forge:gitlab/acme/pay!12"
            )
        path = match["path"].casefold()
        return cls(match["forge"], path, int(match["number"]), match["sign"] == "!")


def _check_slack(text: str, target: str, thread: str) -> None:
    """Raise UsageError for a name, which can be reused for another channel, or a wrong thread."""
    if not target.isalnum() or not target.isascii():
        raise UsageError(
            f"{text[:60]!r}: use the channel's id, C0…, which Slack shows at the end of"
            " 'View channel details', or a member's id, U0…"
        )
    if thread and not _TS.fullmatch(thread):
        raise UsageError(f"{text[:60]!r}: a thread is a message's ts, such as 1700000000.000100")


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
            hook = Target(ChannelName.WEBHOOK, name, None, (DeliveryKind.RESULT,), tuple(outcomes))
            if outcomes and hook.name not in names:
                targets.append(hook)
        return targets

    def check(self, target: Target) -> None:
        """Raise UsageError for a webhook that is not configured."""
        if target.channel == ChannelName.WEBHOOK and target.target not in self.hooks:
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
