"""Deliveries: to whom it was told, how that went, what went wrong."""

from __future__ import annotations

from datetime import datetime

from draftsman.domain.messages.delivery import Delivery, DeliveryStatus
from draftsman_tui.common.delivery_text import delivery_cells
from draftsman_tui.common.output import line, styled
from draftsman_tui.dashboard.job.row_layout import Item, Row, note, row_of, text_row, wrap_row
from draftsman_tui.dashboard.job.snapshot import JobSnapshot
from draftsman_tui.dashboard.resource import Cell


def deliveries(seen: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each, the newest first: what, to whom, how it stands, and its error."""
    if seen.deliveries:
        return [Item(str(one.seq), tuple(_rows(one, width, now))) for one in seen.deliveries]
    name = seen.job.name
    if not seen.targets:
        none = f"{name} tells nobody; to be told: draftsman submit --notify log …"
        return [note(none, width)]
    places = ", ".join(f"{one.channel}:{one.target}" for one in seen.targets)
    return [note(f"{name} has told nothing yet; it will tell {places}", width)]


def _rows(one: Delivery, width: int, now: datetime) -> list[Row]:
    seq, job, kind, place, state, tries, when, wrong = delivery_cells(one, now)
    about = f"{kind} {job}" if one.question else str(kind)
    many = f"  {tries} tries" if one.attempts > 1 else ""
    head = row_of(
        line(
            f"{seq!s:>5}  ",
            styled(f"{about:<18}", "bold"),
            f"{place}  ",
            state if not isinstance(state, str) else styled(state),
            styled(f"  {when}{many}", "dim"),
        )
    )
    rows = wrap_row(head, width, 7)
    dead = one.status is DeliveryStatus.DEAD
    if wrong:
        lead = Cell(" " * 7)
        rows += wrap_row((lead, *text_row(str(wrong), "bad" if dead else "dim")), width, 7)
    if dead:
        rows.append((Cell("       R: send it again", "key"),))
    return rows
