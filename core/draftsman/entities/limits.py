"""Limits of concurrency and rates, and their use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.entities import cells, shared_columns
from draftsman.entities.cells import Cell
from draftsman.entities.entity import Column, Entity, ListedEntity, Listing
from draftsman.ids import account_name

if TYPE_CHECKING:
    from draftsman.queues.usage_limits import LimitChange, LimitUse


def _taken(use: LimitUse) -> str:
    if use.running is not None:
        return f"{use.running} each" if use.is_rule else f"{use.taken} of {use.running}"
    return "" if use.is_rule else str(use.taken)


def _starts(use: LimitUse) -> str:
    if use.rate is None:
        return ""
    count = "" if use.is_rule or use.burst is not None else f"{use.started} of "
    return count + use.rate_text


LIMITS: Final[ListedEntity[LimitUse]] = ListedEntity(
    empty="no limits",
    hint="they are configured in [limits]: draftsman config",
    json_class="draftsman.queues.usage_limits:LimitUse",
    listing=Listing(
        "limits",
        "Limits of concurrency and rates, and their use.",
        read=lambda rt, _: rt.queues.limits(),
        key=lambda row: row.name,
    ),
    columns=(
        Column(
            "LIMIT", help="What the limit is for.", cell=lambda row, _: cells.text(row.title, "key")
        ),
        Column(
            "TAKEN",
            help="Places of jobs that may be claimed, are claimed or run, of all places.",
            cell=lambda row, _: Cell(_taken(row)),
        ),
        Column(
            "STARTS",
            help="Starts in the last period, of those that the rate allows.",
            cell=lambda row, _: Cell(_starts(row)),
        ),
        Column(
            "WAITING",
            help="Jobs that wait for a place.",
            cell=lambda row, _: Cell("" if row.is_rule else f"{row.waiting:,}"),
            right=True,
        ),
        Column(
            "NEXT",
            help="What is next, or when; the error of a failed job.",
            cell=lambda row, now: cells.clock(row.next_at, now) if row.next_at else Cell(""),
        ),
        Column(
            "HOLDERS",
            help="The first jobs that have places.",
            cell=lambda row, _: Cell(row.job_names),
            cut=True,
        ),
    ),
)
LIMIT_CHANGES: Final[Entity[LimitChange]] = Entity(
    empty="the limits have not changed yet",
    json_class="draftsman.queues.usage_limits:LimitChange",
    columns=(
        shared_columns.when(lambda row: row.created_at),
        shared_columns.by(lambda row: account_name(row.actor)),
        shared_columns.text("LIMITS", help="All limits then.", of=lambda row: row.text, cut=True),
    ),
)
