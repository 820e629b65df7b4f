"""Questions and approvals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from draftsman.deliveries.question_text import missing_diff
from draftsman.formats.invisible import one_line
from draftsman.questions.question import OpenQuestion, Question, asking_text
from draftsman.questions.rights import responders_text
from draftsman_tui.common.sections import indented, line_text, reader_at
from draftsman_tui.terminal.output import styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.agent_runs.changes.review import Review
    from draftsman.runtime import Runtime


REVIEW_MEBIBYTES = 4
"""Maximum size of a patch whose changes are counted."""


async def describe(rt: Runtime, question: Question) -> list[Text]:
    """Render a question for the inbox: answerers, deadline, context and choices."""
    from draftsman.jobs.details.sections import questions as sections

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
        *_requested(review),
        *_diff(question, review),
        *indented(sections.choice_lines(question)),
        *indented(sections.note_lines(question, reader)),
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


def _requested(review: Review) -> Iterator[Text]:
    """Yield the changes that were requested at the last review."""
    if (requested := review.requested) is not None:
        yield styled(f"  {requested.heading}:", "yellow")
        yield from (styled(f"    {one_line(text)}") for text in requested.text.splitlines() if text)


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


def answer_command(question: Question) -> Text:
    """Return the command that answers or decides a question."""
    from draftsman.deliveries.documents.plain import how_to_answer

    return styled(f"  {how_to_answer(question)}", "cyan")


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
