"""Text rendering of deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.domain.messages.delivery import Delivery, DeliveryStatus
from draftsman_tui.common import times
from draftsman_tui.common.output import line, styled

if TYPE_CHECKING:
    from datetime import datetime

    from rich.text import Text


STYLES = {
    DeliveryStatus.SENT: "green",
    DeliveryStatus.DEAD: "bold red",
    DeliveryStatus.UNKNOWN: "yellow",
    DeliveryStatus.SENDING: "cyan",
    DeliveryStatus.SUPERSEDED: "dim",
}


def target_text(one: Delivery) -> str:
    """Return where it goes, as `submit --notify` takes it."""
    if str(one.channel) == one.target:
        return one.target
    return f"{one.channel}:{one.target}" + (f"/{one.thread}" if one.thread else "")


def status_cell(one: Delivery) -> Text:
    """Return its status, in the style of it."""
    return styled(one.status, STYLES.get(one.status, ""))


def delivery_cells(one: Delivery, now: datetime | None = None) -> tuple[Text | str, ...]:
    """Return id, job, kind, to, status, tries, when, and what went wrong."""
    about = f"/{one.question}" if one.question else ""
    when = times.ago(one.sent_at or one.created_at, now)
    said = one.last_error or ""
    if said and one.next_attempt_at is not None and one.status is not DeliveryStatus.SENDING:
        said = f"again {times.left(one.next_attempt_at, now)}: {said}"
    return (
        styled(one.seq, "bold"),
        f"D-{one.job}{about}",
        str(one.kind),
        target_text(one),
        status_cell(one),
        str(one.attempts),
        when,
        said,
    )


def summary_lines(found: list[Delivery]) -> list[Text]:
    """Return a line for each place that was told: how many of each status, and the last error."""
    lines = []
    for place in dict.fromkeys(target_text(one) for one in found):
        mine = [one for one in found if target_text(one) == place]
        counts = {status: sum(one.status is status for one in mine) for status in DeliveryStatus}
        said = [
            styled(f"{count} {status}", STYLES.get(status, ""))
            for status, count in counts.items()
            if count
        ]
        parts: list[Text | str] = [styled(f"  {place}  ", "bold")]
        for nth, part in enumerate(said):
            parts += ([", "] if nth else []) + [part]
        error = next((one.last_error for one in mine if one.last_error), None)
        lines.append(line(*parts, styled(f"  {error}" if error else "", "red")))
    return lines
