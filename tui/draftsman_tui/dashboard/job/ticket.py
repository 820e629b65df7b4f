"""The ticket: what was asked for, in whose words, with what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from draftsman.domain.job import Job
from draftsman_tui.common import times
from draftsman_tui.common.output import as_data, one_line
from draftsman_tui.dashboard.job.row_layout import Item, Row, lines, section, wrap_row
from draftsman_tui.dashboard.job.snapshot import JobSnapshot
from draftsman_tui.dashboard.resource import Cell

LONGEST: Final = 100_000
"""Characters of a text that are shown."""
_INDENT: Final = 10


def ticket(seen: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return the facts, the text, the names of what is attached, and the payload."""
    job = seen.job
    facts = [row for name, value in _facts(job, now) for row in pair(name, value, width)]
    text = list(lines(bounded(job.ticket_text or "", job), width)) if job.ticket_text else []
    rest = {name: value for name, value in job.payload.items() if name != "repo"}
    return [
        Item("facts", tuple(facts)),
        *section("text", "Text", text or [(Cell("the ticket has no text", "dim"),)]),
        *section("payload", "Payload", list(written(rest, job, width))),
        *section("overrides", "Overrides", list(written(job.overrides, job, width))),
    ]


def pair(name: str, value: str, width: int, role: str = "") -> list[Row]:
    """Return a name and what it is, wrapped behind it."""
    row = (Cell(f"{name:<{_INDENT}}", "dim"), Cell(one_line(value), role))
    return wrap_row(row, width, _INDENT)


def written(value: Any, job: Job, width: int) -> Iterator[Row]:
    """Yield a value as JSON, nothing where there is none."""
    if value:
        text = json.dumps(as_data(value), indent=2, ensure_ascii=False)
        yield from lines(bounded(text, job), width)


def bounded(text: str, job: Job) -> str:
    """Return a text that may be endless, cut with a sign and where the rest is."""
    if len(text) <= LONGEST:
        return text
    more = len(text) - LONGEST
    return f"{text[:LONGEST]}\n… {more:,} more characters: draftsman show {job.name} --json"


def _facts(job: Job, now: datetime) -> Iterator[tuple[str, str]]:
    yield "title", job.ticket_title or "none"
    yield "type", f"{job.type}{f' · agent {job.agent}' if job.agent else ''} · mode {job.mode}"
    source = job.payload.get("repo")
    place = source.get("source") if isinstance(source, dict) else None
    if job.repo or place:
        yield "repo", str(place or job.repo)
    who = job.invoker_display_name or job.invoker_id
    yield "asked by", f"{who} ({job.source} {job.invoker_id}), {times.clock(job.created_at, now)}"
    yield "queue", f"{job.queue} · priority {job.priority} · key {job.idempotency_key}"
    if job.ticket_url:
        yield "page", f"{job.ticket_url}   o: open it"
    if job.tags:
        yield "tags", ", ".join(job.tags)
    if job.requested_skills:
        yield "skills", ", ".join(job.requested_skills)
    if names := _attached(job.payload):
        yield "attached", ", ".join(names)


def _attached(payload: dict[str, Any]) -> list[str]:
    """Return the names of what came with the request, which a card has in its ticket."""
    card = payload.get("ticket")
    found = (card if isinstance(card, dict) else payload).get("attachments")
    given = found if isinstance(found, list) else []
    return [str(one.get("name", one)) if isinstance(one, dict) else str(one) for one in given]
