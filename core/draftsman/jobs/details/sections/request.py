"""What people sent to a job: its request, attachments and messages."""

from __future__ import annotations

from collections.abc import Iterator

from draftsman.formats.amounts import format_size
from draftsman.ids import account_name, run_text
from draftsman.jobs.control.job_message import JobMessage
from draftsman.jobs.details.job_details import JobDetails
from draftsman.jobs.details.sections.section import (
    Entry,
    Line,
    LineSpan,
    Reader,
    SectionText,
    flat,
    name,
)
from draftsman.jobs.job import TERMINAL, Job, Status
from draftsman.jobs.requests.attachments import JobAttachment
from draftsman.jobs.requests.uncommitted_changes import FIELD as CHANGES
from draftsman.jobs.status_display import Meaning
from draftsman.value_format import fields


def request(details: JobDetails, reader: Reader) -> Iterator[SectionText]:
    """Yield the request of the job."""
    yield from request_parts(details.job)


def request_parts(job: Job) -> Iterator[SectionText]:
    """Yield the text, and the payload without the repository, which is a fact."""
    if job.request and (text := (job.request.text or "").strip("\n")):
        yield SectionText(text, is_markdown=True)
    payload = {key: value for key, value in job.payload.items() if key not in ("repo", CHANGES)}
    if job.overrides:
        payload["overrides"] = job.overrides
    if payload:
        lines = fields(payload, f"draftsman show {job.name} --json")
        yield SectionText("\n".join(lines), values=payload)


def joined_requests(details: JobDetails, reader: Reader) -> Iterator[Entry]:
    """Yield the requests that joined the job."""
    for event in details.joined_requests:
        payload = event.payload
        requester = f"{payload.get('name') or payload.get('requester')} ({payload.get('source')})"
        head: Line = (name(flat(requester)), "  ", reader.ago(event.created_at))
        text = str(payload.get("text") or payload.get("title") or "")
        yield Entry("", (head, *_text_lines(text)))


def attachments(details: JobDetails, reader: Reader) -> Iterator[Entry]:
    """Yield the name and the state of each attachment."""
    for item in details.attachments:
        source = f", with message {item.message}" if item.message else ""
        head: Line = (f"{item.ordinal}  ", name(item.name), f"  {attachment_state(item)}{source}")
        yield Entry("", (head,))


def attachment_state(item: JobAttachment) -> str:
    """Return the size of an attachment, or why it has none."""
    if item.size is not None:
        return format_size(item.size)
    return f"refused: {flat(item.reason)}" if item.reason else "waits for its download"


def messages(details: JobDetails, reader: Reader) -> Iterator[Entry]:
    """Yield the sender, state and text of each message."""
    for message in details.messages:
        sender = message.sender_display_name or account_name(message.sender)
        head: Line = (
            f"{message.ordinal}  ",
            name(flat(sender)),
            "  ",
            reader.ago(message.created_at),
            "  ",
            *_delivery(message, details.job.status, reader),
        )
        yield Entry("", (head, *_text_lines(message.text)))


def _delivery(message: JobMessage, status: Status, reader: Reader) -> Line:
    """Return whether the agent has a message, in a few words."""
    if message.delivered_at is not None:
        delivered = LineSpan(f"delivered in {run_text(message.run or 0)} ", Meaning.SUCCESS)
        return delivered, reader.ago(message.delivered_at, Meaning.SUCCESS)
    if status in TERMINAL:
        text = "not delivered: the job ended before; a retry gets it"
    elif message.run is not None:
        text = f"given to {run_text(message.run)}; delivered with its next checkpoint"
    else:
        text = "waits for the agent"
    return (LineSpan(text, Meaning.WAITING),)


def _text_lines(text: str) -> Iterator[Line]:
    yield from ((line,) for line in text.strip("\n").splitlines())
