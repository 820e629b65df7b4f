"""Permission rules: proposed after equal decisions of people, ratified by a person. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from draftsman.formats.amounts import counted
from draftsman.ids import question_name
from draftsman.jobs.fits import Fit
from draftsman.jobs.status_display import Meaning
from draftsman.questions.permission_rules.command_pattern import (
    kind_of,
    matches,
    narrowest_pattern,
    pattern_text,
)
from draftsman.text import STORED_SENTENCE

if TYPE_CHECKING:
    from draftsman.questions.question_spec import Choice


class RuleStatus(StrEnum):
    """Status of a rule; only an active rule that has not expired allows commands."""

    PROPOSED = "proposed"
    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


CURRENT: Final = frozenset({RuleStatus.PROPOSED, RuleStatus.ACTIVE})
RATIFIED: Final = Fit({RuleStatus.PROPOSED}, "is {}")
"""A rule can be ratified while it is proposed, and ended while it is current."""
ENDED: Final = Fit(CURRENT, "is {}")
MEANINGS: Final[Mapping[RuleStatus, Meaning]] = {
    RuleStatus.PROPOSED: Meaning.WAITING,
    RuleStatus.ACTIVE: Meaning.SUCCESS,
    RuleStatus.EXPIRED: Meaning.NEUTRAL,
    RuleStatus.REVOKED: Meaning.NEUTRAL,
}


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """A rule that allows commands of agents in a repository; `seconds` is its time when active."""

    id: int
    repo: str
    pattern: list[str]
    status: RuleStatus
    decisions: int
    """Decisions of people to allow matching commands, when it was proposed."""
    uses: int
    """Questions that it has answered."""
    seconds: float
    proposed_at: datetime
    proposed_by: str
    ratified_at: datetime | None
    ratified_by: str | None
    expires_at: datetime | None
    ended_at: datetime | None
    ended_by: str | None
    end_reason: str | None = field(metadata=STORED_SENTENCE)

    @property
    def text(self) -> str:
        """The pattern as text: `pytest tests/*`."""
        return pattern_text(self.pattern)


@dataclass(frozen=True, slots=True)
class ProposedRule:
    """A proposed rule whose message was not written yet; `job` is the job that carries it."""

    id: int
    repo: str
    pattern: list[str]
    decisions: int
    seconds: float
    proposed_by: str
    job: int

    @property
    def key(self) -> str:
        """The key of the message, which is written once."""
        return f"rule {self.id} proposed"


def rule_notice(payload: dict[str, Any], rule: PermissionRule | None) -> dict[str, Any]:
    """Return the payload of a notice about a rule, as the rule is recorded.

    The sessions of workers write payloads: the text of an operator's decision is not theirs. A
    rule that is not proposed any more has no buttons.
    """
    if rule is None:
        return {key: payload[key] for key in payload if key != "rule"}
    notice = {"text": proposal_text(rule), "names_job": True}
    return notice | {"rule": rule.id} if rule.status is RuleStatus.PROPOSED else notice


def proposal_text(rule: PermissionRule | ProposedRule) -> str:
    """Return the message about a proposed rule."""
    person = rule.proposed_by.rpartition(":")[2]
    by = "" if person == "system" else f" by {person}"
    days = max(1, round(rule.seconds / 86_400))
    commands = (
        counted(rule.decisions, "matching command") if rule.decisions else "no matching commands"
    )
    return (
        f"Rule {rule.id} is proposed{by} for {rule.repo}: agents may run"
        f" {pattern_text(rule.pattern)} without a question for"
        f" {counted(days, 'day')}. People have allowed {commands}. An operator can"
        f" ratify or decline it; to see the commands: draftsman rules show {rule.id}"
    )


@dataclass(frozen=True, slots=True)
class PermissionDecision:
    """The decision of a person on the command of an agent."""

    job: int
    question: int
    repo: str
    words: list[str]
    allowed: bool
    by: str
    at: datetime

    @property
    def name(self) -> str:
        """Display name of the question: `D-142/2`."""
        return question_name(self.job, self.question)

    @property
    def command(self) -> str:
        """The command."""
        return pattern_text(self.words)


@dataclass(frozen=True, slots=True)
class RuleUse:
    """A question that a rule has answered."""

    job: int
    question: int
    words: list[str]
    at: datetime

    @property
    def name(self) -> str:
        """Display name of the question: `D-142/2`."""
        return question_name(self.job, self.question)

    @property
    def command(self) -> str:
        """The command."""
        return pattern_text(self.words)


@dataclass(frozen=True, slots=True)
class Backtest:
    """Recorded decisions that a rule would have made: those of people who allowed, and denied.

    `asked` are the other decisions about the same program, on which it would have asked people.
    """

    allowed: Sequence[PermissionDecision]
    denied: Sequence[PermissionDecision]
    asked: Sequence[PermissionDecision]


class RuleCandidate(NamedTuple):
    """A pattern that people have allowed so many times in a repository."""

    repo: str
    pattern: tuple[str, ...]
    decisions: int


def backtest(pattern: Sequence[str], decisions: Iterable[PermissionDecision]) -> Backtest:
    """Return the recorded decisions of a repository that a pattern would have made."""
    allowed: list[PermissionDecision] = []
    denied: list[PermissionDecision] = []
    undecided: list[PermissionDecision] = []
    for decision in decisions:
        if matches(pattern, decision.words):
            matching = allowed if decision.allowed else denied
            matching.append(decision)
        elif decision.words[0] == pattern[0]:
            undecided.append(decision)
    return Backtest(allowed, denied, undecided)


def candidates(decisions: Iterable[PermissionDecision], minimum: int) -> list[RuleCandidate]:
    """Return a pattern for each kind of command that people allowed `minimum` times or more.

    Commands are of the same kind if only their files differ, in the same folders. The pattern is
    the narrowest that matches them; none is returned that matches a command which people denied.
    """
    kinds: dict[tuple[str, tuple[str, ...]], list[Sequence[str]]] = defaultdict(list)
    denied: dict[str, list[Sequence[str]]] = defaultdict(list)
    for decision in decisions:
        if decision.allowed:
            kinds[decision.repo, kind_of(decision.words)].append(decision.words)
        else:
            denied[decision.repo].append(decision.words)
    rules = [
        RuleCandidate(repo, narrowest_pattern(commands), len(commands))
        for (repo, _), commands in kinds.items()
        if len(commands) >= max(minimum, 1)
    ]
    return [
        rule for rule in rules if not any(matches(rule.pattern, each) for each in denied[rule.repo])
    ]


# Choices of permission requests, described in words of draftsman's own.
#
# The answer is the value, but people read labels and descriptions, and those are the agent's: it
# could describe `allow once` as a denial.


_ALWAYS: Final = "this call and calls like it, without further questions"
_NEVER: Final = "neither this call nor calls like it, without further questions"
ALLOWING: Final = {
    "allow once": "this call, a single time",
    "allow for this job": "the same tool with the same input, without further questions",
    "allow": "the agent makes this call",
    **dict.fromkeys(("allow always", "always allow"), _ALWAYS),
}
REFUSING: Final = {
    **dict.fromkeys(
        ("deny", "deny once", "reject", "reject once"), "the agent continues without this call"
    ),
    **dict.fromkeys(("deny always", "reject always"), _NEVER),
}
_KINDS: Final = ALLOWING | REFUSING
_QUOTES: Final = str.maketrans(dict.fromkeys('"“”„«»', "'"))
_MAX_QUOTED: Final = 300


def described(choices: Sequence[Choice]) -> tuple[Choice, ...]:
    """Return the choices of a question, with draftsman's words for those of a permission request.

    A permission request has a known choice that allows and a known choice that refuses. Other
    words of the agent are quoted, and its emoji are left out.
    """
    kinds = {_kind(choice.value) for choice in choices}
    if kinds.isdisjoint(ALLOWING) or kinds.isdisjoint(REFUSING):
        return tuple(choices)
    return tuple(_described(choice) for choice in choices)


def is_reworded(choices: Sequence[Choice]) -> bool:
    """Return whether the agent gave the known choices words or emoji of its own."""
    return any(
        choice.emoji is not None or _own_words(choice)
        for choice in choices
        if _kind(choice.value) in _KINDS
    )


def _described(choice: Choice) -> Choice:
    kind = _kind(choice.value)
    if kind not in _KINDS:
        return choice
    quoted = _own_words(choice)[:_MAX_QUOTED]
    text = f'{_KINDS[kind]}; the agent: "{quoted}"' if quoted else _KINDS[kind]
    return choice.model_copy(update={"label": kind, "description": text, "emoji": None})


def _own_words(choice: Choice) -> str:
    """Return the words of the agent for a known choice; empty if they are those of draftsman."""
    kind = _kind(choice.value)
    label = "" if _kind(choice.label) == kind else _plain(choice.label)
    description = _plain(choice.description or "")
    return " · ".join(filter(None, (label, "" if description == _KINDS[kind] else description)))


def _kind(value: str) -> str:
    return " ".join(value.casefold().replace("_", " ").replace("-", " ").split())


def _plain(text: str) -> str:
    """Return a text on a line of its own, without quotation marks that would end its quotation."""
    return " ".join(text.translate(_QUOTES).split())
