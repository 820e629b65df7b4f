"""Permission rules: proposed after equal decisions of people, ratified by a person. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from draftsman.ids import question_name
from draftsman.questions.permission_rules.command_pattern import (
    kind_of,
    matches,
    narrowest_pattern,
    pattern_text,
)


class RuleStatus(StrEnum):
    """Status of a rule; only an active rule that has not expired allows commands."""

    PROPOSED = "proposed"
    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


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
    end_reason: str | None

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


def proposal_text(rule: PermissionRule | ProposedRule) -> str:
    """Return the message about a proposed rule."""
    person = rule.proposed_by.rpartition(":")[2]
    by = "" if person == "system" else f" by {person}"
    days = max(1, round(rule.seconds / 86_400))
    count = f"{rule.decisions:,}" if rule.decisions else "no"
    commands = f"{count} matching command{'' if rule.decisions == 1 else 's'}"
    return (
        f"Rule {rule.id} is proposed{by} for {rule.repo}: agents may run"
        f" {pattern_text(rule.pattern)} without a question for {days}"
        f" day{'' if days == 1 else 's'}. People have allowed {commands}. An operator can"
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
    asked: list[PermissionDecision] = []
    for decision in decisions:
        if matches(pattern, decision.words):
            (allowed if decision.allowed else denied).append(decision)
        elif decision.words[0] == pattern[0]:
            asked.append(decision)
    return Backtest(allowed, denied, asked)


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
    found = [
        RuleCandidate(repo, narrowest_pattern(commands), len(commands))
        for (repo, _), commands in kinds.items()
        if len(commands) >= max(minimum, 1)
    ]
    return [
        rule for rule in found if not any(matches(rule.pattern, each) for each in denied[rule.repo])
    ]
