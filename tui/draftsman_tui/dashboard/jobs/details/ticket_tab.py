"""Ticket tab: the facts of a job, its request, and what people sent to it."""

from __future__ import annotations

from datetime import datetime

from draftsman.formats.invisible import one_line
from draftsman.jobs.details.sections.request import request_parts
from draftsman.jobs.job import Job
from draftsman_tui.dashboard.jobs.details.row_layout import Item
from draftsman_tui.dashboard.jobs.details.section_items import bounded, section_items
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab, declare_tab

SECTIONS = ("facts", "request", "joined", "attachments", "messages")


def ticket(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return the facts, the request, and further requests, attachments and messages."""
    return section_items(snapshot, width, now, *SECTIONS)


def request_text(job: Job) -> str:
    """Return the title, the text and the payload of a request."""
    texts = [part.text for part in request_parts(job)]
    return bounded("\n\n".join([one_line(job.ticket_title or job.type), *texts]), job)


declare_tab(JobTab("ticket", "Facts and request of a job.", ticket, number_key="2"))
