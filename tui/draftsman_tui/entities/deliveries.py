"""Deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.deliveries.delivery import MEANINGS, Delivery, DeliveryStatus, UnservedTarget
from draftsman.formats import times
from draftsman.ids import job_name
from draftsman.text import humanize
from draftsman_tui.entities import cells, shared_columns
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.entity import Column, Entity
from draftsman_tui.terminal.colors import STYLES
from draftsman_tui.terminal.output import line, styled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rich.text import Text


def target_text(delivery: Delivery) -> str:
    """Return the target in the format of `submit --notify`."""
    if str(delivery.channel) == delivery.target:
        return delivery.target
    return f"{delivery.channel}:{delivery.target}" + (
        f"/{delivery.thread}" if delivery.thread else ""
    )


def status_text(delivery: Delivery) -> Text:
    """Render the status in its style."""
    return _status(delivery.status)


def _status(status: DeliveryStatus, count: str = "") -> Text:
    return styled(f"{count}{humanize(status)}", STYLES[MEANINGS[status]])


def subject_text(delivery: Delivery) -> str:
    """Return the name of the job, or of its question."""
    question = f"/{delivery.question}" if delivery.question else ""
    return f"{job_name(delivery.job)}{question}"


def error_text(delivery: Delivery, now: datetime | None = None) -> str:
    """Return the last error, with the time of the next attempt."""
    error = delivery.last_error or ""
    if (
        error
        and delivery.next_attempt_at is not None
        and delivery.status is not DeliveryStatus.SENDING
    ):
        return f"retry {times.until(delivery.next_attempt_at, now)}: {error}"
    return error


def unserved_texts(deliveries: Sequence[Delivery], unserved: Sequence[UnservedTarget]) -> list[str]:
    """Name the targets of these deliveries that no process sends to."""
    targets = {(delivery.channel, delivery.target) for delivery in deliveries}
    return [item.text for item in unserved if (item.channel, item.target) in targets]


def summary_lines(deliveries: Sequence[Delivery], unserved: Sequence[UnservedTarget]) -> list[Text]:
    """Render a line per target: the count of each status, and the last error.

    The targets that no process sends to follow.
    """
    lines = []
    for target in dict.fromkeys(target_text(delivery) for delivery in deliveries):
        selected = [delivery for delivery in deliveries if target_text(delivery) == target]
        counts = {
            status: sum(delivery.status is status for delivery in selected)
            for status in DeliveryStatus
        }
        statuses = [_status(status, f"{count} ") for status, count in counts.items() if count]
        texts: list[Text | str] = [styled(f"  {target}  ", "bold")]
        for index, status_count in enumerate(statuses):
            texts += [", ", status_count] if index else [status_count]
        error = next((delivery.last_error for delivery in selected if delivery.last_error), None)
        lines.append(line(*texts, styled(f"  {error}" if error else "", "red")))
    return lines + [styled(f"  {text}", "yellow") for text in unserved_texts(deliveries, unserved)]


DELIVERIES: Final[Entity[Delivery]] = Entity(
    empty="no deliveries",
    hint="to add a target: draftsman submit --notify log …",
    columns=(
        Column(
            "ID",
            8,
            help="Its id.",
            cell=lambda row, _: Cell(str(row.seq), "key"),
            right=True,
            most=8,
            order=lambda row: row.seq,
        ),
        Column(
            "JOB",
            9,
            help="The job, or its question.",
            cell=lambda row, _: Cell(subject_text(row)),
            most=9,
            order=lambda row: row.job,
        ),
        Column(
            "KIND",
            9,
            help="Its kind.",
            cell=lambda row, _: Cell(str(row.kind)),
            order=lambda row: row.kind,
        ),
        Column(
            "TARGET",
            18,
            help="Where the message goes, as in submit --notify.",
            cell=lambda row, _: cells.text(target_text(row)),
            most=40,
            order=target_text,
        ),
        Column(
            "STATUS",
            11,
            help="Its status.",
            cell=lambda row, _: cells.status_cell(row.status, MEANINGS[row.status]),
            order=lambda row: row.status,
        ),
        Column(
            "ATTEMPTS",
            8,
            help="Attempts to send it.",
            cell=lambda row, _: Cell(str(row.attempts)),
            right=True,
            from_width=90,
            order=lambda row: row.attempts,
        ),
        shared_columns.age(lambda row: row.created_at),
        Column(
            "ERROR",
            help="The last error.",
            cell=lambda row, now: cells.text(
                error_text(row, now), "bad" if row.status is DeliveryStatus.DEAD_LETTER else "dim"
            ),
            cut=True,
            optional=True,
        ),
    ),
)
