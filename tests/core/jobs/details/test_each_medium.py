"""The same job in the terminal, the dashboard and the web inbox: the same labels and values."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from draftsman.database.database import Connection
from draftsman.jobs.details.job_details import JobDetails
from draftsman.jobs.details.sections.order import SECTIONS
from draftsman.jobs.details.sections.questions import responders
from draftsman.jobs.details.sections.section import Reader
from draftsman.runtime import Runtime
from draftsman_bots.web.job_pages import details_page
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import People
from draftsman_tui.cli.jobs import show
from draftsman_tui.dashboard.jobs.details.job_tabs import JOB_TABS
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from tests.core.jobs.details.test_job_details import jobs

SIGNS = "ab \x1b\x07\x9b\u202e\u2066\u0301字🙂[bold]<b>&{%\"'"
HOSTILE = st.text(st.sampled_from(SIGNS), max_size=30)
WIDE = 10_000
HINT = re.compile(r"draftsman (?:approve|answer) |a: (?:answer|decide) |enter: |R: ")
"""How people answer or open something in a medium of its own."""
UNTITLED = {
    "request": "",
    "timeline": "Events",
    "questions": "Questions",
    "deliveries": "Deliveries",
}
"""Titles of the first sections of tabs that show none; others begin with a title or a note."""
Shown = dict[str, list[str]]
"""The lines of each section, by its title."""


def normal(text: str) -> str:
    """Return a line without what a medium does to blanks and control characters."""
    return " ".join(re.sub(r"\\u\{[0-9a-f]+\}|[\x80-\x9f\ufffd]", "?", text).split())


def shown(lines: Iterable[tuple[str, str]]) -> Shown:
    """Return the lines of sections, without hints and blank lines."""
    sections: Shown = {}
    for title, text in lines:
        if (line := normal(text)) and not HINT.match(line):
            sections.setdefault(title, []).append(line)
    return sections


def terminal(details: JobDetails, reader: Reader) -> Shown:
    output = io.StringIO()
    console = Console(file=output, width=WIDE, color_system=None, emoji=False, markup=False)
    console.print(*show.job_lines(details, reader), sep="\n", soft_wrap=False)
    title = ""
    lines: list[tuple[str, str]] = []
    for line in output.getvalue().split("\n")[1:]:
        if line.startswith(" "):
            lines.append((title, line))
        else:
            title = line.strip() or title
    return shown(lines)


def dashboard(details: JobDetails, reader: Reader) -> Shown:
    snapshot = JobSnapshot(details, details.at, reader.responders)
    lines: list[tuple[str, str]] = []
    for tab in JOB_TABS.values():
        if tab.name in ("log", "diff", "usage"):
            continue
        title = UNTITLED.get(tab.name, "note")
        for item in tab.items(snapshot, WIDE, reader.now):
            if item.title_rows:
                title = item.rows[1][0].text
            rows = item.rows[item.title_rows :]
            lines += [(title, "".join(cell.text for cell in row)) for row in rows]
    return shown(lines)


class Page(HTMLParser):
    """The sections of a page: terms, lines of entries, and lines of texts."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, str]] = []
        self._open: list[str] = []
        self._title: str | None = ""
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "section":
            self._title = None if "id" not in dict(attrs) else ""
        if tag in ("dt", "p", "pre", "h2", "summary"):
            self._text = ""
        self._open.append(tag)

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "h2" and self._title is not None:
            self._title = self._text
        elif tag in ("pre", "dd") and "details" in self._open:
            pass  # what the terminal and the dashboard show on request, too
        elif tag in ("dd", "p", "pre", "summary") and self._title is not None:
            self.lines += [(self._title, line) for line in self._text.split("\n")]
        elif tag == "dt":
            self._text += " "
        if tag == "details":
            self._open.remove(tag)


def web(details: JobDetails, reader: Reader) -> Shown:
    page = Page()
    text = bytes(details_page(None, details, reader, [], "").body).decode()
    page.feed(text[text.index("<dl") :])
    by_title = shown(line for line in page.lines if line[1] != "Changes")
    if events := by_title.get("Events"):
        by_title["Events"] = events[::-1]  # a page begins with the newest
    return by_title


def with_text(details: JobDetails, text: str) -> JobDetails:
    """Return the job with the text of a person or an agent in all places that may have it."""
    job: dict[str, Any] = {"title": text, "tags": [text, "x"], "payload": {"key": text}}
    if details.job.request is not None:
        job["request"] = replace(details.job.request, text=text or None)
    if details.job.last_error is not None:
        job["last_error"] = text or "no"
    if details.job.cancel_reason is not None:
        job["cancel_reason"] = text
    return replace(
        details,
        job=replace(details.job, **job),
        runs=[replace(run, error=text) for run in details.runs],
        questions=[replace(item, text=f"{text}?", key=text) for item in details.questions],
        open_questions=[replace(item, text=f"{text}?") for item in details.open_questions],
        events=[replace(event, payload={"text": text}) for event in details.events],
    )


def compare(name: str, details: JobDetails, reader: Reader, text: str) -> Shown:
    """Compare a job with this text in each medium; return what it shows."""
    hostile = with_text(details, text)
    in_terminal = terminal(hostile, reader)
    assert web(hostile, reader) == in_terminal, name
    in_dashboard = dashboard(hostile, reader)
    assert {title: in_dashboard.get(title) for title in in_terminal} == in_terminal, name
    order = [section.title for section, _ in SECTIONS if section.title in in_terminal]
    assert list(in_terminal) == order, name
    return in_terminal


async def test_each_medium_shows_the_same_sections_labels_and_values(
    make: Factory,
    rt: Runtime,
    people: People,
    conn: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(show, "MAX_ENTRIES", WIDE)  # a command shows the newest of many
    numbers = await jobs(make, rt, people, conn)
    numbers["deciding"] = (await make.asked(GATE)).number
    numbers["retried"] = await make.failed()
    await rt.job_control.retry(numbers["retried"], make.owner)
    numbers["joined"] = await make.queued(subject_key="card:1")
    await make.queued(subject_key="card:1", text="and the tests")
    titles: set[str] = set()
    read: dict[str, tuple[JobDetails, Reader]] = {}
    for name, number in numbers.items():
        details = await rt.read_model.details(number)
        read[name] = details, Reader(details.at, responders(details, rt.policy, "you"))
        titles |= compare(name, *read[name], SIGNS).keys()
    assert titles == {section.title for section, _ in SECTIONS}

    @given(st.sampled_from(sorted(read)), HOSTILE)
    def is_the_same(name: str, text: str) -> None:
        compare(name, *read[name], text)

    is_the_same()
