"""Permission rules and their backtests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from draftsman.durations import format_duration
from draftsman.entities import cells, shared_columns
from draftsman.entities.cells import Cell
from draftsman.entities.entity import Column, ListedEntity, Listing
from draftsman.entities.terms import Measure
from draftsman.formats import times
from draftsman.formats.amounts import counted
from draftsman.formats.invisible import one_line
from draftsman.questions.permission_rules.permission_rule import MEANINGS, RuleStatus

if TYPE_CHECKING:
    from datetime import datetime

    from draftsman.questions.permission_rules.permission_rule import (
        Backtest,
        PermissionDecision,
        PermissionRule,
    )

LISTED: Final = 10
"""Decisions of each part of a backtest that are listed."""


def expiry_text(rule: PermissionRule, now: datetime | None = None) -> str:
    """Return when a rule expires or expired, or how long it lasts once it is ratified."""
    if rule.status is RuleStatus.ACTIVE and rule.expires_at is not None:
        return times.until(rule.expires_at, now)
    if rule.status is RuleStatus.PROPOSED:
        return f"for {format_duration(rule.seconds)}"
    ended = rule.ended_at or rule.expires_at
    return "" if ended is None else times.ago(ended, now)


def history_lines(rule: PermissionRule) -> Iterator[str]:
    """Yield who proposed, ratified and ended a rule, and when."""
    decisions = counted(rule.decisions, "equal decision")
    after = f" after {decisions}" if rule.decisions else ""
    yield f"proposed by {rule.proposed_by}{after}, {times.ago(rule.proposed_at)}"
    if rule.ratified_at is not None:
        yield f"ratified by {rule.ratified_by}, {times.ago(rule.ratified_at)}"
    if rule.status is RuleStatus.PROPOSED:
        yield f"allows nothing until a person ratifies it, then {expiry_text(rule)}"
    elif rule.status is RuleStatus.ACTIVE:
        yield f"expires {expiry_text(rule)}"
    elif rule.status is RuleStatus.EXPIRED:
        yield f"expired {expiry_text(rule)}"
    elif rule.ended_at is not None:
        reason = one_line(rule.end_reason or "")
        explained = f": {reason}" if reason not in {"", rule.status} else ""
        yield f"ended by {rule.ended_by}{explained}, {expiry_text(rule)}"


def backtest_lines(test: Backtest) -> Iterator[str]:
    """Yield the recorded decisions of people that a pattern would have made."""
    yield "on the recorded decisions:"
    yield from _part("would have allowed, and people allowed", test.allowed)
    yield from _part("would have allowed, although people DENIED", test.denied)
    yield from _part("would have asked people, of the same program", test.asked)


def _part(title: str, decisions: Sequence[PermissionDecision]) -> Iterator[str]:
    yield f"  {len(decisions):>4,}  {title}"
    for decision in decisions[:LISTED]:
        verb = "allowed" if decision.allowed else "denied"
        yield f"          {decision.name}  {one_line(decision.command)}  ({verb} by {decision.by})"
    if len(decisions) > LISTED:
        yield f"          … and {len(decisions) - LISTED:,} more"


def rule_data(rule: PermissionRule) -> dict[str, Any]:
    """Return the JSON object of a rule."""
    return asdict(rule) | {"text": rule.text}


RULES: Final[ListedEntity[PermissionRule]] = ListedEntity(
    empty="no rules",
    hint="draftsman proposes a rule after equal decisions on commands of agents",
    data=rule_data,
    json_class="draftsman.questions.permission_rules.permission_rule:PermissionRule",
    json_more={"text": {"type": "string"}},
    listing=Listing(
        "rules",
        "Permission rules, newest first.",
        read=lambda rt, _: rt.rules.all(None),
        key=lambda row: str(row.id),
    ),
    columns=(
        Column(
            "ID",
            5,
            help="Its id.",
            cell=lambda row, _: Cell(str(row.id), "key"),
            right=True,
            order=lambda row: row.id,
            measure=Measure.NUMBER,
        ),
        shared_columns.status(lambda row: cells.status_cell(row.status, MEANINGS[row.status]), 9),
        shared_columns.repo(lambda row: row.repo, most=30),
        shared_columns.text(
            "ALLOWS", help="Commands that it allows.", of=lambda row: row.text, cut=True
        ),
        Column(
            "USES",
            6,
            help="Questions that it answered.",
            cell=lambda row, _: Cell(f"{row.uses:,}", "" if row.uses else "dim"),
            right=True,
            order=lambda row: row.uses,
            measure=Measure.NUMBER,
            largest_first=True,
        ),
        Column(
            "EXPIRES",
            10,
            help="When it expires or expired.",
            cell=lambda row, now: Cell(expiry_text(row, now)),
            from_width=80,
        ),
        shared_columns.text(
            "RATIFIED",
            12,
            help="Who ratified the rule.",
            of=lambda row: row.ratified_by,
            from_width=100,
        ),
        shared_columns.age(lambda row: row.proposed_at),
    ),
)
