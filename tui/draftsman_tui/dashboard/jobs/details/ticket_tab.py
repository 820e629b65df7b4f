"""Ticket tab: the request of a job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from draftsman.formats import times
from draftsman.jobs.job import Job
from draftsman_tui.dashboard.jobs.details.row_layout import Item, Row, lines, section, wrap_row
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab, declare_tab
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.jobs import type_text
from draftsman_tui.terminal.output import as_data, one_line

MAX_LENGTH: Final = 100_000
"""Maximum characters of a text to show."""
_INDENT: Final = 10


def ticket(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return the fields, text, payload and overrides."""
    job = snapshot.job
    fields = [row for name, value in _fields(job, now) for row in pair(name, value, width)]
    text = list(lines(bounded(job.ticket_text or "", job), width)) if job.ticket_text else []
    return [
        Item("facts", tuple(fields)),
        *section("text", "Text", text or [(Cell("No text.", "dim"),)]),
        *section("payload", "Payload", list(json_rows(_payload(job), job, width))),
        *section("overrides", "Overrides", list(json_rows(job.overrides, job, width))),
    ]


def request_text(job: Job) -> str:
    """Return the title, the text and, without a text, the payload of a request."""
    payload = _payload(job)
    body = job.ticket_text or (_json(payload) if payload else "")
    title = one_line(job.ticket_title or job.type)
    return bounded(f"{title}\n\n{body}" if body else title, job)


def pair(name: str, value: str, width: int, role: str = "") -> list[Row]:
    """Return a name and its value, wrapped with a hanging indent."""
    row = (Cell(f"{name:<{_INDENT}}", "dim"), Cell(one_line(value), role))
    return wrap_row(row, width, _INDENT)


def json_rows(value: Any, job: Job, width: int) -> Iterator[Row]:
    """Yield the rows of a value as JSON; nothing if it is empty."""
    if value:
        yield from lines(bounded(_json(value), job), width)


def bounded(text: str, job: Job) -> str:
    """Truncate a long text, with the command that shows the rest."""
    if len(text) <= MAX_LENGTH:
        return text
    hidden = len(text) - MAX_LENGTH
    return f"{text[:MAX_LENGTH]}\n… {hidden:,} more characters: draftsman show {job.name} --json"


def _payload(job: Job) -> dict[str, Any]:
    """Return the payload without the repository, which is a field."""
    return {name: value for name, value in job.payload.items() if name != "repo"}


def _json(value: Any) -> str:
    return json.dumps(as_data(value), indent=2, ensure_ascii=False)


def _fields(job: Job, now: datetime) -> Iterator[tuple[str, str]]:
    yield "title", job.ticket_title or "none"
    yield "type", type_text(job)
    source = job.payload.get("repo")
    repo_source = source.get("source") if isinstance(source, dict) else None
    if job.repo or repo_source:
        yield "repo", str(repo_source or job.repo)
    invoker = job.invoker_display_name or job.invoker_id
    yield (
        "submitted",
        f"{invoker} ({job.source} {job.invoker_id}), {times.clock(job.created_at, now)}",
    )
    yield "queue", f"{job.queue} · priority {job.priority} · key {job.idempotency_key}"
    if job.ticket_url:
        yield "url", f"{job.ticket_url}   o: open"
    if job.template:
        yield "template", f"{job.template}@{job.template_version}"
    if job.tags:
        yield "tags", ", ".join(job.tags)
    if job.requested_skills:
        yield "skills", ", ".join(job.requested_skills)
    if names := _attachment_names(job.payload):
        yield "attached", ", ".join(names)


def _attachment_names(payload: dict[str, Any]) -> list[str]:
    """Return the names of attachments; a Trello card has them in its ticket."""
    card = payload.get("ticket")
    attachments = (card if isinstance(card, dict) else payload).get("attachments")
    if not isinstance(attachments, list):
        return []
    return [
        str(attachment.get("name", attachment) if isinstance(attachment, dict) else attachment)
        for attachment in attachments
    ]


declare_tab(JobTab("ticket", "Request of a job.", ticket, number_key="2"))
