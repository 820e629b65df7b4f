"""The deliveries of a job: how many of each status, and each with its error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from draftsman.deliveries.delivery import MEANINGS, Delivery, DeliveryStatus, UnservedTarget
from draftsman.deliveries.target import TargetRow
from draftsman.ids import job_name
from draftsman.jobs.details.job_details import JobDetails
from draftsman.jobs.details.sections.section import (
    Entry,
    Fact,
    Line,
    LineSpan,
    Reader,
    SectionPart,
    faint,
    flat,
    name,
)
from draftsman.jobs.status_display import Meaning
from draftsman.text import humanize


def deliveries(details: JobDetails, reader: Reader) -> Iterator[SectionPart]:
    """Yield each delivery, newest first, then the counts of each target."""
    of_target: dict[str, list[Delivery]] = {target_text(row): [] for row in details.targets}
    for delivery in details.deliveries:
        of_target.setdefault(target_text(delivery), []).append(delivery)
        yield Entry(str(delivery.seq), tuple(_delivery(delivery, reader)))
    for target, of_job in of_target.items():
        yield Fact(target, _counts(of_job))
    for text in unserved_texts(details.deliveries, details.unserved):
        yield Entry("", ((LineSpan(text, Meaning.WAITING),),))


def target_text(target: Delivery | TargetRow) -> str:
    """Return the target in the format of `submit --notify`."""
    if str(target.channel) == target.target:
        return target.target
    return f"{target.channel}:{target.target}" + (f"/{target.thread}" if target.thread else "")


def subject_text(delivery: Delivery) -> str:
    """Return the name of the job, or of its question."""
    question = f"/{delivery.question}" if delivery.question else ""
    return f"{job_name(delivery.job)}{question}"


def error_line(delivery: Delivery, reader: Reader, meaning: Meaning | None = None) -> Line:
    """Return the last error, with the time of the next attempt; empty without an error."""
    if not delivery.last_error:
        return ()
    error = LineSpan(flat(delivery.last_error), meaning)
    if delivery.next_attempt_at is None or delivery.status is DeliveryStatus.SENDING:
        return (error,)
    return "retry ", reader.until(delivery.next_attempt_at), ": ", error


def unserved_texts(deliveries: Sequence[Delivery], unserved: Sequence[UnservedTarget]) -> list[str]:
    """Name the targets of these deliveries that no process sends to."""
    targets = {(delivery.channel, delivery.target) for delivery in deliveries}
    return [item.text for item in unserved if (item.channel, item.target) in targets]


def _counts(deliveries: Sequence[Delivery]) -> Line:
    """Return the number of each status, and the newest error."""
    if not deliveries:
        return (faint("no deliveries yet"),)
    spans: list[LineSpan | str] = []
    for status in DeliveryStatus:
        if count := sum(delivery.status is status for delivery in deliveries):
            spans += [", "] if spans else []
            spans.append(LineSpan(f"{count} {humanize(status)}", MEANINGS[status]))
    error = next((delivery.last_error for delivery in deliveries if delivery.last_error), None)
    return *spans, LineSpan(f"  {flat(error)}" if error else "", Meaning.FAILURE)


def _delivery(delivery: Delivery, reader: Reader) -> Iterator[Line]:
    kind = humanize(delivery.kind)
    label = f"{kind} {subject_text(delivery)}" if delivery.question else kind
    target = f"{target_text(delivery)}  "
    described: Line = (f"{delivery.seq:>5}  ", name(f"{label:<18}"), target)
    if not reader.types_commands:  # nor does the reader need its number
        described = (name(label), " to ", target)
    yield (
        *described,
        LineSpan(humanize(delivery.status), MEANINGS[delivery.status]),
        "  ",
        reader.ago(delivery.sent_at or delivery.created_at, Meaning.NEUTRAL),
        faint(f"  {delivery.attempts} attempts" if delivery.attempts > 1 else ""),
    )
    is_dead = delivery.status is DeliveryStatus.DEAD_LETTER
    if error := error_line(delivery, reader, Meaning.FAILURE if is_dead else Meaning.NEUTRAL):
        yield error
