"""Text rendering of questions and approvals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from draftsman.domain.messages.action_text import action_text
from draftsman.domain.messages.plain_text import missing_diff
from draftsman.domain.question import OnExpire, OpenQuestion, Question, QuestionKind
from draftsman_tui.common import times
from draftsman_tui.common.output import line, one_line, styled

if TYPE_CHECKING:
    from datetime import datetime

    from rich.text import Text

    from draftsman.runtime import Runtime


CONTEXT_LINES = 12
"""Lines of context that the inbox shows of a question."""


async def describe(rt: Runtime, question: Question) -> list[Text]:
    """Return a question as people read it: who may answer, until when, what can be said."""
    return [
        heading(question, await answerers(rt, question)),
        *job_lines(question),
        *(styled(f"  {one}") for one in question.text.splitlines()),
        *detail_lines(question),
        *_diff(question),
        *choice_lines(question),
        _how(question),
    ]


def heading(question: Question, who: str, now: datetime | None = None) -> Text:
    """Return its name, who may answer, since when and until when, and what then."""
    gate = question.kind is QuestionKind.APPROVAL
    return line(
        styled(question.name, "bold yellow"),
        f"  {'approval' if gate else 'question'} for {who}"
        f" · asked {times.ago(question.asked_at, now)} · ",
        styled(deadline_text(question, now), "yellow"),
    )


def job_lines(question: Question) -> Iterator[Text]:
    """Yield the job that an open question is of: title, repository, agent, requester."""
    if isinstance(question, OpenQuestion):
        job = [question.title, question.repo, question.agent, f"for {question.requester}"]
        yield styled(f"  {one_line(' · '.join(filter(None, job)))}", "dim")


def detail_lines(
    question: Question, most: int = CONTEXT_LINES, more: str | None = None
) -> Iterator[Text]:
    """Yield where it went when nobody answered, the beginning of its context, what it allows.

    `more` is how to see the rest; unset: the command of a terminal.
    """
    if question.escalated_at:
        yield styled(f"  {escalation_text(question)}", "yellow")
    context = (question.context_snippet or "").strip("\n").splitlines()
    for one in context[:most]:
        yield styled(f"  | {one}", "dim")
    if len(context) > most:
        more = more or f"draftsman show D-{question.job} --json"
        yield styled(f"  | … {len(context) - most} lines more: {more}", "dim")
    if question.action:
        yield styled(f"  if approved: {one_line(action_text(question.action))}")


def _diff(question: Question) -> Iterator[Text]:
    """Yield where the changes are that an approval is asked with, or that there are none."""
    if missing := missing_diff(question):
        yield styled(f"  {missing}", "dim")
    elif question.kind is QuestionKind.APPROVAL and question.patch_sha256 is not None:
        yield styled(f"  changes: draftsman diff {question.name}")


def deadline_text(question: Question, now: datetime | None = None) -> str:
    """Return how long there is to answer, and what follows where nobody does."""
    if question.expires_at is None:
        return "no expiry"
    to = question.escalate_to
    then = {
        OnExpire.EXPIRE: "",
        OnExpire.DEFAULT: f", then {question.default_value!r} counts",
        OnExpire.CONTINUE: ", then it goes on without",
        OnExpire.ESCALATE: "" if question.escalated_at else f", then {to} is asked too",
    }
    return f"expires {times.left(question.expires_at, now)}{then[question.on_expire]}"


def escalation_text(question: Question) -> str:
    """Return to whom it went when nobody had answered in time."""
    assert question.escalated_at is not None  # noqa: S101
    return f"escalated to {question.escalate_to} {times.ago(question.escalated_at)}"


def choice_lines(question: Question) -> Iterator[Text]:
    """Yield what may be chosen, by number."""
    width = max((len(choice["label"]) for choice in question.choices), default=0)
    for place, choice in enumerate(question.choices, 1):
        note = choice.get("description") or ""
        label = one_line(choice["label"])
        yield line(
            styled(f"  {place:>3}  ", "bold"), f"{label:<{width}}  ", styled(one_line(note), "dim")
        )


def _how(question: Question) -> Text:
    if question.kind is QuestionKind.APPROVAL:
        return styled(
            f"  draftsman approve {question.name}, or deny {question.name} --reason …", "cyan"
        )
    if not question.choices:
        return styled(f"  draftsman answer {question.name} 'your answer'", "cyan")
    own = ", or your own words" if question.freeform_allowed else ""
    return styled(f"  draftsman answer {question.name} NUMBER{own}", "cyan")


async def answerers(rt: Runtime, question: Question) -> str:
    """Return who may answer, in words."""
    if question.kind is QuestionKind.APPROVAL:
        people = sorted(rt.policy.approvers(question.approvers))
        votes = f"{question.quorum} of " if question.quorum > 1 else ""
        nobody = "you" if rt.embedded else "nobody: it names no approvers"
        return votes + (", ".join(people) or nobody)
    if rt.embedded:
        return "you"
    named = rt.policy.approvers(question.approvers)
    named |= {n for n, person in rt.policy.people.items() if "responder" in person.roles}
    people = sorted(named)
    invoker = (await rt.read_model.job(question.job)).invoker_id
    return ", ".join([*people, *([] if invoker in people else [invoker])])
