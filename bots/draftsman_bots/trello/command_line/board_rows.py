"""Trello boards whose labels create jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from draftsman.entities import cells, shared_columns
from draftsman.entities.cells import Cell
from draftsman.entities.entity import Column, Entity, Surface
from draftsman.formats import times
from draftsman.formats.amounts import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from draftsman_bots.trello.records.board import BoardConfig


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A board, the time of its last poll, and its checks; None: not checked."""

    config: BoardConfig
    polled_at: datetime | None
    checks: Sequence[Any] | None = None


def board_data(row: BoardRow) -> dict[str, Any]:
    """Return the JSON object of a board with its checks."""
    polled = None if row.polled_at is None else row.polled_at.isoformat()
    config = row.config.model_dump(mode="json")
    return config | {"polled_at": polled, "checks": row.checks}


def _labels(config: BoardConfig) -> str:
    return ", ".join(f"{rule.name or id}: {rule.text}" for id, rule in config.labels.items())


def _polled(row: BoardRow, now: datetime) -> Cell:
    return Cell("never" if row.polled_at is None else times.ago(row.polled_at, now))


def _health(checks: Sequence[Any] | None) -> Cell:
    if checks is None:
        return Cell("?")
    if failed := sum(check.status == "fail" for check in checks):
        return Cell(f"{failed} failed", "bad")
    if warned := sum(check.status == "warn" for check in checks):
        return Cell(counted(warned, "warning"), "warns")
    return Cell("healthy", "good")


BOARDS: Final[Entity[BoardRow]] = Entity(
    empty="no boards configured",
    hint="to add a board: draftsman boards add https://trello.com/b/…",
    data=board_data,
    json_class="draftsman_bots.trello.records.board:BoardConfig",
    json_more={"polled_at": {"type": ["string", "null"]}, "checks": {}},
    columns=(
        shared_columns.text(
            "BOARD", 26, help="Name of the board.", of=lambda row: row.config.name, role="key"
        ),
        Column(
            "LABELS",
            help="Labels of cards that lead to its jobs.",
            cell=lambda row, _: cells.text(_labels(row.config)),
            cut=True,
        ),
        Column(
            "VIA",
            8,
            help="How changes arrive: by webhook or by polling.",
            cell=lambda row, _: Cell("webhook" if row.config.webhook_id else "polling"),
            order=lambda row: row.config.webhook_id is None,
        ),
        Column(
            "POLLED",
            12,
            help="When it was read last.",
            cell=_polled,
            from_width=90,
            order=lambda row: (row.polled_at is None, row.polled_at),
        ),
        Column(
            "CHECKS",
            help="Results of its checks.",
            cell=lambda row, _: _health(row.checks),
            only=Surface.COMMANDS,  # the checks call Trello
        ),
        Column(
            "ID",
            24,
            help="Its id.",
            cell=lambda row, _: Cell(row.config.board_id, "dim"),
            from_width=100,
        ),
        Column(
            "URL",
            24,
            help="Its address.",
            cell=lambda row, _: cells.text(row.config.url),
            cut=True,
            from_width=160,
            optional=True,
        ),
    ),
)
