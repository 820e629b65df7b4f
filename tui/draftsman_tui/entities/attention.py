"""Text rendering of notifications about a question, and of the next step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from draftsman.formats import times
from draftsman_tui.terminal.output import styled

if TYPE_CHECKING:
    from datetime import datetime

    from rich.text import Text

    from draftsman.attention.attention import QuestionAttention, QuestionNotification


def attention_lines(
    attention: QuestionAttention | None, now: datetime | None = None
) -> Iterator[Text]:
    """Yield the delays and notifications of a question, and the next step of its ladder."""
    if attention is None:
        return
    if attention.critical:
        yield styled("  critical: sent in quiet hours, too", "red")
    if attention.acknowledged_by and attention.acknowledged_until:
        until = times.clock(attention.acknowledged_until)
        yield styled(f"  acknowledged by {attention.acknowledged_by} until {until}", "yellow")
    if attention.delegated_to and attention.delegated_until:
        until = times.clock(attention.delegated_until)
        by = f"by {attention.delegated_by} to {attention.delegated_to}"
        yield styled(f"  delegated {by}, others wait until {until}", "yellow")
    for delay in attention.snoozed:
        until = times.clock(delay.expires_at)
        yield styled(f"  snoozed by {delay.person} until {until}", "yellow")
    yield from (styled(f"  {text}", "dim") for text in notification_texts(attention.notifications))
    if next_text := next_step_text(attention, now):
        yield styled(f"  {next_text}", "dim")


def notification_texts(notifications: Sequence[QuestionNotification]) -> Iterator[str]:
    """Yield a line about the recipients of each time at which people were notified."""
    notified = [item for item in notifications if item.notified]
    for moment in dict.fromkeys(times.clock(item.notified_at) for item in notified):
        names = [_recipient(item) for item in notified if times.clock(item.notified_at) == moment]
        yield f"notified {_unique(names)} at {moment}"
    skipped = [_skipped(item) for item in notifications if not item.notified]
    if skipped:
        yield f"not notified: {_unique(skipped)}"


def next_step_text(attention: QuestionAttention, now: datetime | None = None) -> str:
    """Return `next: ben, @oncall in 12 min, at 10:45`; "" if no step follows."""
    if attention.next_at is None or not attention.next_step:
        return ""
    escalates = ", with the right to answer from then on," if attention.escalates else ""
    when = f"{times.until(attention.next_at, now)}, at {times.clock(attention.next_at)}"
    return f"next: {', '.join(attention.next_step)}{escalates} {when} (ladder {attention.ladder})"


def _recipient(item: QuestionNotification) -> str:
    place = {"thread": " in the thread", "inbox": " in the inbox"}.get(item.outcome, "")
    undelivered = "not delivered" if item.delivery_status == "dead_letter" else "not sent yet"
    pending = "" if item.delivery_status in (None, "sent") else f" ({undelivered})"
    return f"{item.recipient}{place}{pending}"


def _skipped(item: QuestionNotification) -> str:
    until = f" until {times.clock(item.away_until)}" if item.away_until else ""
    return f"{item.recipient} {item.skip_text}{until}"


def _unique(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
