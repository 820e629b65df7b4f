"""Text rendering of questions and approvals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from draftsman.deliveries.action_text import action_text
from draftsman.deliveries.plain_text import missing_diff
from draftsman.formats import times
from draftsman.ids import job_name
from draftsman.questions.question import (
    OnExpire,
    OpenQuestion,
    Question,
    QuestionKind,
    asking_text,
)
from draftsman_tui.entities.attention import attention_lines
from draftsman_tui.terminal.output import line, one_line, styled

if TYPE_CHECKING:
    from datetime import datetime

    from rich.text import Text

    from draftsman.agent_runs.changes.review import Review
    from draftsman.runtime import Runtime


REVIEW_MEBIBYTES = 4
"""Maximum size of a patch whose changes are counted."""
CONTEXT_LINES = 12
"""Maximum number of context lines in the inbox."""


async def describe(rt: Runtime, question: Question) -> list[Text]:
    """Render a question for the inbox: answerers, deadline, context and choices."""
    review = await rt.changes.of_question(question, most=REVIEW_MEBIBYTES)
    attention = await rt.acknowledgments.attention([question.job])
    return [
        heading(question, answerers(rt, question, await invoker_of(rt, question))),
        *job_lines(question),
        *(styled(f"  {text_line}") for text_line in question.text.splitlines()),
        *detail_lines(question),
        *_diff(question, review),
        *choice_lines(question),
        *attention_lines(attention.get((question.job, question.ordinal))),
        answer_command(question),
    ]


def heading(question: Question, names: str, now: datetime | None = None) -> Text:
    """Render name, kind, answerers, age and deadline as a line."""
    approval = question.kind is QuestionKind.APPROVAL
    return line(
        styled(question.name, "bold yellow"),
        f"  {'approval' if approval else 'question'} for {names}"
        f" · asked {times.ago(question.asked_at, now)} · ",
        styled(pending_text(question, now) or deadline_text(question, now), "yellow"),
    )


def job_lines(question: Question) -> Iterator[Text]:
    """Yield a line about the job of an open question: title, repository, agent, requester."""
    if isinstance(question, OpenQuestion):
        job = [question.title, question.repo, question.agent, f"for {question.requester}"]
        yield styled(f"  {one_line(' · '.join(filter(None, job)))}", "dim")
        if asking := asking_text(question.job, question.others):
            yield styled(f"  {asking}", "yellow")


def detail_lines(
    question: Question, max_lines: int = CONTEXT_LINES, more: str | None = None
) -> Iterator[Text]:
    """Yield the escalation, the first lines of the context, and the action to approve.

    `more` is the command that shows the rest of the context; by default, a terminal command.
    """
    if question.escalated_at:
        yield styled(f"  {escalation_text(question)}", "yellow")
    context = (question.context_snippet or "").strip("\n").splitlines()
    for text_line in context[:max_lines]:
        yield styled(f"  | {text_line}", "dim")
    if len(context) > max_lines:
        command = more or f"draftsman show {job_name(question.job)} --json"
        yield styled(f"  | … {len(context) - max_lines} more lines: {command}", "dim")
    if action := question.approved_action:
        yield styled(f"  if approved: {one_line(action_text(action))}")


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
    if question.expires_at is None:
        return "no deadline"
    fallback = {
        OnExpire.EXPIRE: "",
        OnExpire.DEFAULT: f", default: {question.label_of(question.default_value or '')!r}",
        OnExpire.CONTINUE: ", then continues without an answer",
        OnExpire.ESCALATE: (
            "" if question.escalated_at else f", then escalates to {question.escalate_to}"
        ),
    }
    return f"expires {times.until(question.expires_at, now)}{fallback[question.on_expire]}"


def pending_text(question: Question, now: datetime | None = None) -> str:
    """Describe an answer or a decision that can still be undone; "" without one."""
    if not isinstance(question, OpenQuestion) or question.applies_at is None:
        return ""
    verb = "decided" if question.kind is QuestionKind.APPROVAL else "answered"
    return f"{verb} by {question.decided_by}, counts {times.until(question.applies_at, now)}"


def escalation_text(question: Question) -> str:
    """Describe the escalation of a question that was not answered in time."""
    assert question.escalated_at is not None  # noqa: S101
    return f"escalated to {question.escalate_to} {times.ago(question.escalated_at)}"


def choice_lines(question: Question) -> Iterator[Text]:
    """Yield the numbered choices with their descriptions."""
    width = max((len(choice["label"]) for choice in question.choices), default=0)
    for number, choice in enumerate(question.choices, 1):
        note = choice.get("description") or ""
        label = one_line(choice["label"])
        yield line(
            styled(f"  {number:>3}  ", "bold"), f"{label:<{width}}  ", styled(one_line(note), "dim")
        )


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
    if question.kind is QuestionKind.APPROVAL:
        people = sorted(rt.policy.approvers(question.approvers))
        votes = f"{question.quorum} of " if question.quorum > 1 else ""
        fallback = "you" if rt.embedded else "no approvers (none are configured)"
        return votes + (", ".join(people) or fallback)
    if rt.embedded:
        return "you"
    names = rt.policy.approvers(question.approvers)
    names |= {name for name, person in rt.policy.people.items() if "responder" in person.roles}
    people = sorted(names)
    return ", ".join([*people, *([] if invoker in people else [invoker])])
