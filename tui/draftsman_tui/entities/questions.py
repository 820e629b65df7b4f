"""Questions and approvals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from draftsman.deliveries.action_text import action_text
from draftsman.deliveries.documents.json import question_json
from draftsman.deliveries.plain_text import holder_text, missing_diff
from draftsman.jobs.details.sections import questions as sections
from draftsman.jobs.details.sections.section import plain
from draftsman.questions.question import OpenQuestion, Question, QuestionKind, asking_text
from draftsman.questions.rights import responders_text
from draftsman_tui.entities import cells, shared_columns
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.entity import Column, Entity
from draftsman_tui.entities.sections import indented, line_text, reader_at
from draftsman_tui.terminal.output import one_line, styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.agent_runs.changes.review import Review
    from draftsman.runtime import Runtime


REVIEW_MEBIBYTES = 4
"""Maximum size of a patch whose changes are counted."""


async def describe(rt: Runtime, question: Question) -> list[Text]:
    """Render a question for the inbox: answerers, deadline, context and choices."""
    review = await rt.changes.of_question(question, most=REVIEW_MEBIBYTES)
    attention = await rt.acknowledgments.attention([question.job])
    responders = answerers(rt, question, await invoker_of(rt, question))
    reader = reader_at()
    of_question = attention.get((question.job, question.ordinal))
    return [
        line_text(*sections.open_heading(question, responders, reader)),
        *job_lines(question),
        *(styled(f"  {text_line}") for text_line in question.text.splitlines()),
        *indented(sections.detail_lines(question)),
        *_diff(question, review),
        *indented(sections.choice_lines(question)),
        *indented(sections.escalation_lines(question, reader)),
        *indented(sections.attention_lines(of_question, reader)),
        answer_command(question),
    ]


def job_lines(question: Question) -> Iterator[Text]:
    """Yield a line about the job of an open question: title, repository, agent, requester."""
    if isinstance(question, OpenQuestion):
        job = [question.title, question.repo, question.agent, f"for {question.requester}"]
        yield styled(f"  {one_line(' · '.join(filter(None, job)))}", "dim")
        if asking := asking_text(question.job, question.others):
            yield styled(f"  {asking}", "yellow")


def _diff(question: Question, review: Review) -> Iterator[Text]:
    """Yield the changes under review with their commands, or the reason there are none."""
    if missing := missing_diff(question):
        yield styled(f"  {missing}", "dim")
    if review.summary:
        yield styled(f"  {one_line(review.summary)}")
    if review.since_patch:
        command = f"draftsman diff {question.name} --since-approval"
        yield styled(f"  changes since {review.since}: {command}")
    if question.patch_sha256 is not None and not missing and review.patch != "":
        yield styled(f"  changes: draftsman diff {question.name}")


def deadline_text(question: Question, now: datetime | None = None) -> str:
    """Describe the deadline and the outcome without an answer."""
    return plain(sections.deadline(question, reader_at(now)))


def pending_text(question: Question, now: datetime | None = None) -> str:
    """Describe an answer or a decision that can still be undone; "" without one."""
    return plain(sections.pending(question, reader_at(now)))


def answer_command(question: Question) -> Text:
    """Return the command that answers or decides a question."""
    if question.kind is QuestionKind.APPROVAL:
        return styled(
            f"  draftsman approve {question.name}, or deny {question.name} --reason …", "cyan"
        )
    if not question.choices:
        return styled(f"  draftsman answer {question.name} 'your answer'", "cyan")
    free_text = ", or free text" if question.freeform_allowed else ""
    return styled(f"  draftsman answer {question.name} NUMBER{free_text}", "cyan")


async def invoker_of(rt: Runtime, question: Question) -> str:
    """Return the person or account that requested the job of a question."""
    if isinstance(question, OpenQuestion):
        return question.requester
    return (await rt.read_model.job(question.job)).invoker_id


def answerers(rt: Runtime, question: Question, invoker: str) -> str:
    """List the people who may answer a question of the invoker's job, separated by commas."""
    return responders_text(rt.policy, question, invoker=invoker, owner=owner_name(rt))


def owner_name(rt: Runtime) -> str:
    """Return what the owner of an embedded database is called; "" for another database."""
    return "you" if rt.embedded else ""


# The inbox of open questions.


_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def summary_text(row: OpenQuestion) -> str:
    """Return the action that an approval allows, in words, and the question."""
    action = row.approved_action
    changed = f", +{row.added or 0} -{row.removed or 0}" if row.added or row.removed else ""
    return f"{action_text(action)}{changed} · {row.text}" if action else f"{row.text}{changed}"


def _jobs(row: OpenQuestion) -> str:
    """Return how many jobs ask the same; "" for a single job."""
    return f"{len(row.others) + 1} jobs" if row.others else ""


def _by(row: OpenQuestion) -> str:
    """Return the requester, and the number of further requesters of the same question."""
    further = {*row.other_requesters} - {row.requester}
    return f"{row.requester} +{len(further)}" if further else row.requester


def _about(row: OpenQuestion, now: datetime) -> Cell:
    parts = (pending_text(row, now), holder_text(row), _jobs(row), summary_text(row))
    return cells.text(" · ".join(filter(None, parts)))


def _choices(row: OpenQuestion) -> str:
    if row.kind is QuestionKind.APPROVAL:
        return "approve, deny"
    return ", ".join(row.labels()) or "free text"


INBOX: Final[Entity[OpenQuestion]] = Entity(
    empty="no open questions",
    data=question_json,
    columns=(
        Column(
            "QUESTION",
            9,
            help="Name of the question.",
            cell=lambda row, _: Cell(row.name, "key"),
            most=12,
            order=lambda row: (row.job, row.ordinal),
        ),
        Column(
            "KIND",
            8,
            help="Its kind.",
            cell=lambda row, _: Cell(
                "approval" if row.kind is QuestionKind.APPROVAL else "question", "asks"
            ),
            most=12,
            order=lambda row: row.kind,
        ),
        Column(
            "ABOUT",
            help="Who works on it, and what is asked.",
            cell=_about,
            cut=True,
            order=lambda row: row.text,
        ),
        shared_columns.text(
            "TITLE",
            14,
            help="Title of the job, or its type.",
            of=lambda row: row.title,
            most=40,
            from_width=100,
            below="ABOUT",
        ),
        shared_columns.repo(
            lambda row: (row.repo or "").rpartition("/")[2],
            width=12,
            most=24,
            from_width=84,
            below="QUESTION",
        ),
        replace(shared_columns.by(_by, from_width=84), width=8, most=20, below="KIND"),
        Column(
            "CHOICES",
            16,
            help="Its choices.",
            cell=lambda row, _: cells.text(_choices(row)),
            most=30,
            from_width=170,
        ),
        shared_columns.text(
            "AGENT", 12, help="Its agent.", of=lambda row: row.agent, from_width=170
        ),
        Column(
            "FOR",
            12,
            help="Who may decide it.",
            cell=lambda row, _: cells.text(", ".join(row.approvers)),
            most=20,
            from_width=160,
        ),
        Column(
            "WAITS",
            6,
            help="Time since it was asked.",
            cell=lambda row, now: cells.age(row.asked_at, now),
            right=True,
            order=lambda row: row.asked_at,
        ),
        Column(
            "EXPIRES",
            10,
            help="When it expires or expired.",
            cell=lambda row, now: cells.until(row.expires_at, now),
            order=lambda row: row.expires_at or _NEVER,
        ),
    ),
)
