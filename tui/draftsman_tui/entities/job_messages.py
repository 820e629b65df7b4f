"""Text rendering of the messages and attachments of people to a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from draftsman.ids import actor_name
from draftsman.jobs.job import TERMINAL, Status
from draftsman_tui.terminal import times
from draftsman_tui.terminal.output import line, styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.jobs.control.job_message import JobMessage
    from draftsman.jobs.requests.attachments import JobAttachment


def message_lines(messages: Sequence[JobMessage], status: Status) -> Iterator[Text]:
    """Yield sender, state and text of each message of a job with this status."""
    for message in messages:
        delivered = message.delivered_at is not None
        yield line(
            styled(f"  {message.ordinal}  ", "bold"),
            styled(message.sender_display_name or actor_name(message.sender), "bold"),
            f"  {times.ago(message.created_at)}  ",
            styled(delivery_text(message, status), "green" if delivered else "yellow"),
        )
        yield from (styled(f"     {part}") for part in message.text.splitlines())


def attachment_lines(attachments: Sequence[JobAttachment]) -> Iterator[Text]:
    """Yield the name and the state of each attachment of a job."""
    for item in attachments:
        source = f", with message {item.message}" if item.message else ""
        yield line(
            styled(f"  {item.ordinal}  ", "bold"),
            styled(item.name, "bold"),
            f"  {attachment_state(item)}{source}",
        )


def attachment_state(item: JobAttachment) -> str:
    """Return the size of an attachment, or why it has none."""
    if item.size is not None:
        return f"{item.size:,} bytes"
    return f"refused: {item.reason}" if item.reason else "waits for its download"


def delivery_text(message: JobMessage, status: Status) -> str:
    """Return whether the agent has a message, in a few words."""
    if message.delivered_at is not None:
        return f"delivered in run .{message.run} {times.ago(message.delivered_at)}"
    if status in TERMINAL:
        return "not delivered: the job ended before; a retry gets it"
    if message.run is not None:
        return f"given to run .{message.run}; delivered with its next checkpoint"
    return "waits for the agent"
