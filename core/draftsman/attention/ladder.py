"""Ladders: the steps by which people are notified of a question. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from draftsman.channels import ChannelName
from draftsman.channels.accounts import direct_target
from draftsman.channels.targets import is_only_critical
from draftsman.deliveries.target import parse_recipient
from draftsman.errors import UsageError
from draftsman.people.policy import Person, Policy
from draftsman.people.visibility import may_see
from draftsman.questions.question import BUDGET_KEY, QuestionKind

ASKER: Final = "@asker"
OWNERS: Final = "@owners"
ONCALL: Final = "@oncall"
DEFAULT: Final = "default"
"""Name of the schedule of `@oncall`."""
AT_ONCE: Final = 120.0
"""Seconds after which the first message of a question no longer counts as a notification."""


class WhenAway(StrEnum):
    """The effect of a step whose people may not be interrupted."""

    NEXT = "next"
    WAIT = "wait"


class NotificationOutcome(StrEnum):
    """The result of a step for a recipient.

    `sent`: a message of its own; `thread`: the message in the thread of the job; `inbox`: the
    person has no account in a chat. The others were not notified.
    """

    SENT = "sent"
    THREAD = "thread"
    INBOX = "inbox"
    AWAY = "away"
    SNOOZED = "snoozed"
    NOT_ALLOWED = "not_allowed"
    EMPTY = "empty"


NOTIFIED: Final = frozenset(
    {NotificationOutcome.SENT, NotificationOutcome.THREAD, NotificationOutcome.INBOX}
)


@dataclass(frozen=True, slots=True)
class LadderStep:
    """A step: the people and targets it notifies, `after` seconds since the step before."""

    notify: tuple[str, ...]
    after: float = 0.0
    when_away: WhenAway = WhenAway.NEXT
    escalate: bool = False
    """Whether its people may answer from then on."""

    def as_json(self) -> dict[str, Any]:
        """Return the step for the database."""
        return {
            "notify": list(self.notify),
            "after": self.after,
            "when_away": str(self.when_away),
            "escalate": self.escalate,
        }

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> LadderStep:
        """Build a step from the database's JSON."""
        names = tuple(map(str, data["notify"]))
        return cls(names, float(data["after"]), WhenAway(data["when_away"]), bool(data["escalate"]))


@dataclass(frozen=True, slots=True)
class DueStep:
    """A step that is due, and its question; `now` is the database's time."""

    job: int
    question: int
    step: int
    due_at: datetime
    now: datetime
    steps: Sequence[Mapping[str, Any]]
    owners: list[str]
    kind: QuestionKind
    key: str
    text: str
    critical: bool
    approvers: list[str]
    invoker: str
    repo: str
    asked_at: datetime
    expires_at: datetime | None
    chat: bool
    """Whether the question was posted to a channel, a card or an issue."""
    snoozed: list[str] = field(default_factory=list)
    """People who snoozed it, and until when."""
    snoozed_until: list[datetime] = field(default_factory=list)
    approved_by: list[str] = field(default_factory=list)
    """The people who approved so far, of an approval that needs several: no step notifies them."""


@dataclass(frozen=True, slots=True)
class LadderNotice:
    """A recipient of a step.

    A message goes to `channel` and `target`, or `text` to the targets of the job.
    """

    recipient: str
    outcome: NotificationOutcome
    away_until: datetime | None = None
    channel: ChannelName | None = None
    target: str | None = None
    thread: str | None = None
    text: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the notice for the database."""
        until = self.away_until.isoformat() if self.away_until else None
        fields = {"recipient": self.recipient, "outcome": str(self.outcome), "away_until": until}
        message = {"channel": self.channel, "target": self.target, "thread": self.thread}
        return fields | message | {"text": self.text}


@dataclass(frozen=True, slots=True)
class StepPlan:
    """A step that waits until `later`, or the recipients of a step that is taken.

    `names` may answer from now on if the step escalates. The next step follows after `seconds`;
    None: there is none.
    """

    later: datetime | None
    notices: tuple[LadderNotice, ...] = ()
    names: tuple[str, ...] = ()
    seconds: float | None = None


def plan_step(due: DueStep, policy: Policy, on_duty: Mapping[str, Sequence[str]]) -> StepPlan:
    """Decide on a step that is due; `on_duty` are the people of each on-call schedule.

    A person who may not be interrupted is left out, unless the question is critical. If that
    leaves a step without a recipient, the next follows at once, or the step waits for the first
    person; the last step always waits, as long as the question does not expire before.
    """
    step = LadderStep.of(due.steps[due.step - 1])
    names = _names(due, step, policy, on_duty) if step.escalate else ()
    notices = tuple(_notices(due, step, policy, on_duty, names))
    following = [LadderStep.of(data) for data in due.steps[due.step :]]
    if any(notice.outcome in NOTIFIED for notice in notices):
        return StepPlan(None, notices, names, following[0].after if following else None)
    back = [notice.away_until for notice in notices if notice.away_until is not None]
    later = min(back, default=None)
    waits = step.when_away is WhenAway.WAIT or not following
    if waits and later is not None and (due.expires_at is None or later < due.expires_at):
        return StepPlan(later)
    return StepPlan(None, notices, names, 0.0 if following else None)


def _names(
    due: DueStep, step: LadderStep, policy: Policy, on_duty: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Return the people and groups that a step adds to those with the right to answer."""
    names: list[str] = []
    for recipient in step.notify:
        if policy.knows(recipient):
            names.append(recipient)
        elif recipient.startswith("@"):
            names += _people(due, recipient, policy, on_duty) or ()
    return tuple(dict.fromkeys(name for name in names if policy.knows(name)))


def _people(
    due: DueStep, recipient: str, policy: Policy, on_duty: Mapping[str, Sequence[str]]
) -> list[str] | None:
    """Return the people of a recipient; None for a target."""
    kind, _, schedule = recipient.partition(":")
    if kind == ASKER:
        return [policy.requester(due.invoker)]
    if kind == OWNERS:
        return sorted(policy.approvers(due.owners))
    if kind == ONCALL:
        return list(on_duty.get(schedule or DEFAULT, ()))
    return sorted(policy.approvers([recipient])) if policy.knows(recipient) else None


def _notices(
    due: DueStep,
    step: LadderStep,
    policy: Policy,
    on_duty: Mapping[str, Sequence[str]],
    added: Sequence[str],
) -> list[LadderNotice]:
    notices: dict[str, LadderNotice] = {}
    allowed = _allowed(due, policy, added)
    for recipient in step.notify:
        people = _people(due, recipient, policy, on_duty)
        if people is None:
            notices.setdefault(recipient, _of_target(due, recipient))
        elif not people:
            notices.setdefault(recipient, LadderNotice(recipient, NotificationOutcome.EMPTY))
        for name in people or ():
            if name in due.approved_by:
                continue
            in_thread = recipient == ASKER and due.chat and _is_first(due)
            notices.setdefault(name, _of_person(due, name, policy, allowed, in_thread))
    return list(notices.values())


def _of_target(due: DueStep, recipient: str) -> LadderNotice:
    try:
        target = parse_recipient(recipient)
    except UsageError:  # a person or group that was removed since
        return LadderNotice(recipient, NotificationOutcome.EMPTY)
    if not due.critical and is_only_critical(target.channel):
        return LadderNotice(recipient, NotificationOutcome.NOT_ALLOWED)
    return LadderNotice(
        recipient=recipient,
        outcome=NotificationOutcome.SENT,
        away_until=None,
        channel=target.channel,
        target=target.target,
        thread=target.thread,
    )


def _of_person(
    due: DueStep, name: str, policy: Policy, allowed: frozenset[str], in_thread: bool
) -> LadderNotice:
    person = policy.people.get(name) or Person(name, frozenset(), _account(name))
    if name not in allowed or not may_see(person, due.repo):
        return LadderNotice(name, NotificationOutcome.NOT_ALLOWED)
    snoozed = dict(zip(due.snoozed, due.snoozed_until, strict=True)).get(name)
    if snoozed is not None and snoozed > due.now:
        return LadderNotice(name, NotificationOutcome.SNOOZED, snoozed)
    free_at = due.now if due.critical else person.free_at(due.now)
    if free_at > due.now:
        return LadderNotice(name, NotificationOutcome.AWAY, free_at)
    if in_thread:
        return LadderNotice(name, NotificationOutcome.THREAD)
    if direct := direct_target(person.ids):
        return LadderNotice(name, NotificationOutcome.SENT, None, *direct)
    if due.chat:
        text = f"D-{due.job}/{due.question} waits for {name}: {' '.join(due.text.split())[:500]}"
        return LadderNotice(name, NotificationOutcome.THREAD, text=text)
    return LadderNotice(name, NotificationOutcome.INBOX)


def _account(invoker: str) -> dict[ChannelName, str]:
    """Return the account of a requester without a known person."""
    channel, _, id = invoker.partition(":")
    return {channel: id} if id else {}


def _allowed(due: DueStep, policy: Policy, added: Sequence[str]) -> frozenset[str]:
    """Return the people who may answer."""
    names = [*due.approvers, *added]
    if due.key == BUDGET_KEY:
        return frozenset(n for n, person in policy.people.items() if "operator" in person.roles)
    if due.kind is QuestionKind.APPROVAL:
        return policy.eligible_approvers(names, due.invoker)
    eligible = policy.eligible_people(names, due.invoker, approval=False, repo=due.repo)
    return frozenset({person.name for person in eligible} | {policy.requester(due.invoker)})


def _is_first(due: DueStep) -> bool:
    """Return whether the message in the thread has just been sent."""
    after = LadderStep.of(due.steps[0]).after
    return due.step == 1 and due.now - due.asked_at <= timedelta(seconds=after + AT_ONCE)
