"""Title and body of a pull request. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from draftsman import text_template
from draftsman.deliveries.result_text import usage_text
from draftsman.forges.project import Project
from draftsman.forges.pull_request import DRAFT_LINE, CommitStatus, TextLimits, marker
from draftsman.forges.untrusted_text import block, cell, code, line, quote
from draftsman.formats.truncation import truncate
from draftsman.text import capitalized

REQUEST: Final = 6000
"""Characters of the request; the sum of all limits is below the smallest limit of a forge."""
SUMMARY: Final = 20_000
COMMANDS: Final = 30
DECISIONS: Final = 20
MAX_ISSUES: Final = 20
ISSUE: Final = re.compile(
    r"(?:(?P<closes>clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)):?\s+)?"
    r"(?:(?P<url>https?://\S{1,500}?/(?:-/)?issues/)"
    r"|(?P<path>(?<![\w.-])[\w.-]{1,255}(?:/[\w.-]{1,255}){1,20})?#)(?P<number>\d{1,9})\b",
    re.IGNORECASE,
)
"""Bounded: a long word in a request must not cost quadratic time."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that draftsman ran on the work."""

    name: str
    command: str
    passed: bool
    required: bool
    summary: str = ""


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """An answered question of the job."""

    question: str
    answer: str
    by: Sequence[str]


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue that the request names."""

    number: int
    closes: bool


@dataclass(frozen=True, slots=True)
class PullRequestFacts:
    """Facts about the work of a job, for its pull request."""

    job: str
    id: UUID
    head: str
    title: str | None
    request: str
    requester: str
    source: str
    summary: str
    changes: str
    """`3 files changed, +12 -4`."""
    agent: str
    draft: bool
    conflicts: str = ""
    """`conflicts with D-7 (src/pay.py)`."""
    commands: Sequence[Command] = ()
    findings: Sequence[str] = ()
    check_files: Sequence[str] = ()
    evidence_sha256: str | None = None
    decisions: Sequence[AnsweredQuestion] = ()
    tokens: int = 0
    cost: float = 0.0
    issues: Sequence[Issue] = ()


def title_of(facts: PullRequestFacts, limits: TextLimits) -> str:
    """Return the title: that of the request, else the first line of the summary."""
    first = next(iter(facts.summary.strip().splitlines()), "")
    return line(facts.title or first, limits.title) or f"Work of {facts.job}"


def body_of(facts: PullRequestFacts, limits: TextLimits, template: str | None = None) -> str:
    """Return the body, which ends with the marker of the job.

    `template` is that of the configuration, which is trusted; the texts in its fields are not.
    """
    end = marker(facts.job, facts.id, facts.head)
    if facts.draft:
        end = f"{DRAFT_LINE}\n{end}"
    sections = {
        "draft": _draft(facts),
        "request": _request(facts),
        "changes": _changes(facts),
        "evidence": _evidence(facts),
        "decisions": _decisions(facts),
        "cost": _cost(facts),
        "issues": _issues(facts),
    }
    if template is None:
        text = "\n\n".join(section for section in sections.values() if section)
    else:
        named = {"job": facts.job, "title": facts.title or "", "requester": facts.requester}
        text = text_template.fill(
            template, sections | {name: line(value, 300) for name, value in named.items()}
        )
    return f"{truncate(text, limits.body - len(end) - 2)}\n\n{end}"


def status_of(facts: PullRequestFacts, limits: TextLimits) -> CommitStatus | None:
    """Return the commit's status; None for work that no command judged."""
    if not facts.commands:
        return None
    failed = [item.name for item in facts.commands if item.required and not item.passed]
    if failed:
        text = f"{', '.join(failed)} failed"
    else:
        passed = sum(item.passed for item in facts.commands)
        signed = "; signed evidence" if facts.evidence_sha256 else ""
        text = f"{passed} of {len(facts.commands)} commands passed{signed}"
    return CommitStatus(not failed, truncate(f"{facts.job}: {text}", limits.status))


def find_issues(
    text: str, project: Project, url: str | None = None, *, closes: bool = True
) -> list[Issue]:
    """Return the issues of the repository that a text names, by number or URL, each once.

    `url` is that of the ticket of the job: as an issue of the repository it is closed. Without
    `closes` the text closes no others: anyone may have written the text of an issue.
    """
    closing_by_number: dict[int, bool] = {}
    own_ticket = ""
    if url is not None and (match := ISSUE.match(url)) is not None and match["url"] is not None:
        own_ticket = f"closes {url}\n"
    for match in ISSUE.finditer(own_ticket + text):
        address = match["url"]
        path = match["path"]
        prefix = f"{project.url}/"
        if address is not None and not address.casefold().startswith(prefix.casefold()):
            continue
        if path is not None and path.casefold() != project.path.casefold():
            continue
        number = int(match["number"])
        closing = match["closes"] is not None and (closes or match.start() < len(own_ticket))
        closing_by_number[number] = closing_by_number.get(number, False) or closing
    return [Issue(number, closes) for number, closes in closing_by_number.items()][:MAX_ISSUES]


def _draft(facts: PullRequestFacts) -> str:
    if not facts.draft:
        return ""
    return "**Draft**: required commands fail. A person decided to hand it over as it is."


def _request(facts: PullRequestFacts) -> str:
    by = line(facts.requester, 200)
    head = f"## Request\n\n{facts.job}, requested by {by} ({facts.source})"
    title = facts.title or ""
    request = facts.request
    repeated = request.strip().startswith(title.removesuffix("…").strip())
    texts = (request,) if repeated else (title, request)
    text = "\n\n".join(paragraph for paragraph in texts if paragraph.strip())
    return f"{head}:\n\n{quote(text, REQUEST)}" if text.strip() else f"{head}."


def _changes(facts: PullRequestFacts) -> str:
    author = f" by {line(facts.agent, 200)}" if facts.agent else ""
    paragraphs = [block(facts.summary, SUMMARY), f"{line(facts.changes, 500)}{author}."]
    if conflicts := line(facts.conflicts, 1000):
        paragraphs.append(f"{capitalized(conflicts)}.")
    return "## Changes\n\n" + "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _evidence(facts: PullRequestFacts) -> str:
    if not facts.commands and facts.evidence_sha256 is None:
        return "## Evidence\n\nNone: draftsman ran no validation commands on this work."
    rows = [_row(item) for item in facts.commands[:COMMANDS]]
    if (omitted := len(facts.commands) - len(rows)) > 0:
        rows.append(f"| {omitted} more | |")
    paragraphs = [f"draftsman ran these commands on `{facts.head[:12]}`, in fresh clones.".strip()]
    if rows:
        paragraphs.append("\n".join(("| command | result |", "|---|---|", *rows)))
    else:
        paragraphs = ["draftsman ran no validation commands on this work."]
    for name, names in (("Findings", facts.findings), ("Changed check files", facts.check_files)):
        if names:
            listed = ", ".join(code(item, 150) for item in names[:10])
            omission = f" and {len(names) - 10} more" if len(names) > 10 else ""
            paragraphs.append(f"{name}: {listed}{omission}.")
    if facts.evidence_sha256 is not None:
        paragraphs.append(
            f"Signed statement: `evidence.json`, SHA-256 `{facts.evidence_sha256}`."
            f" To check it: `draftsman verify {facts.job}`"
        )
    return "## Evidence\n\n" + "\n\n".join(paragraphs)


def _row(item: Command) -> str:
    result = "passed"
    if not item.passed:
        result = "**failed**" if item.required else "failed (optional)"
    detail = f": {cell(item.summary, 100)}" if item.summary and not item.passed else ""
    return f"| {cell(item.name, 60)}: {code(item.command, 150)} | {result}{detail} |"


def _decisions(facts: PullRequestFacts) -> str:
    if not facts.decisions:
        return ""
    rows = [
        f"| {cell(item.question, 300)} | {cell(item.answer, 200)} |"
        f" {cell(', '.join(item.by), 100) or 'default'} |"
        for item in facts.decisions[:DECISIONS]
    ]
    if (omitted := len(facts.decisions) - len(rows)) > 0:
        rows.append(f"| {omitted} more | | |")
    table = "\n".join(("| question | answer | by |", "|---|---|---|", *rows))
    return f"## Questions and answers\n\n{table}"


def _cost(facts: PullRequestFacts) -> str:
    usage = usage_text(facts.tokens, facts.cost)
    return f"## Cost\n\n{usage}" if usage else ""


def _issues(facts: PullRequestFacts) -> str:
    """Return a line for each closed issue, because forges read a keyword for each."""
    lines = [f"Closes #{issue.number}" for issue in facts.issues if issue.closes]
    if related := [f"#{issue.number}" for issue in facts.issues if not issue.closes]:
        lines.append(f"Related: {', '.join(related)}")
    return "\n".join(lines)
