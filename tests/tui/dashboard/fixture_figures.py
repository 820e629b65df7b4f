"""Rows of the tables of costs, figures and rules with fixed values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from draftsman.attention.figures import AttentionFigures, FigureGroup
from draftsman.costs.budgets import Cost, CostGroup
from draftsman.entities.costs import CostRow
from draftsman.entities.figures import FigureRow
from draftsman.jobs.details.throughput import Period, Throughput, ThroughputGroup
from draftsman.questions.permission_rules.permission_rule import PermissionRule, RuleStatus

_NOW: Final = datetime(2030, 1, 1, 12, tzinfo=UTC)
_PERSON: Final = FigureGroup.PERSON
FIGURES: Final = [
    FigureRow(AttentionFigures(_PERSON, "anna", 0, 0, 41, 95.0, 240.0, 5400.0, 52, 52 / 41), _NOW),
    FigureRow(AttentionFigures(_PERSON, "ben", 0, 0, 7, 600.0, 900.0, 30e3, 9, 9 / 7, 1), _NOW),
]
COSTS: Final = [
    CostRow(CostGroup.REPO, Cost("acme/pay", 412, 18.4, 8_400_000, 310_000), 0.92, _NOW),
    CostRow(CostGroup.REPO, Cost("inventory", 37, 1.6, 610_000, 22_500), 0.08, _NOW),
]


def _rule(id: int, repo: str, pattern: str, status: RuleStatus, uses: int) -> PermissionRule:
    ratified = None if status is RuleStatus.PROPOSED else _NOW - timedelta(days=3)
    return PermissionRule(
        id, repo, pattern.split(" "), status, 5, uses, 30 * 86_400.0, _NOW - timedelta(days=4),
        "system", ratified, "olga" if ratified else None,
        ratified and ratified + timedelta(days=30), None, None, None,
    )  # fmt: skip


RULES: Final = [
    _rule(3, "acme/pay", "ruff check --fix src/**", RuleStatus.PROPOSED, 0),
    _rule(2, "acme/pay", "pytest tests/*", RuleStatus.ACTIVE, 1204),
    _rule(1, "inventory", "go test ./...", RuleStatus.EXPIRED, 17),
]


def _throughput(period: Period, by: str, value: str, finished: int, failed: int) -> Throughput:
    bars: list[int | None] = [None, None, *(finished * nth % 11 for nth in range(22))]
    kind = ThroughputGroup(by)
    waits = [None if bar is None else bar * 1.5 for bar in bars]
    runs = [None if bar is None else 60.0 * bar for bar in bars]
    times = (4.2, 65.0, 312.0, 2400.0) if finished > 1 else (None, None, None, None)
    return Throughput(
        period, kind, value, finished, failed, period.seconds, bars, waits, runs, *times
    )


THROUGHPUT = [
    _throughput(period, *row)
    for period in Period
    for row in (
        ("all", "", 1204, 12),
        ("queue", "default", 1180, 0),
        ("type", "run_agent", 40, 12),
        ("repo", "acme/payments", 1, 0),
    )
]
