"""A person's word on a question, and what is said about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from draftsman import field_errors
from draftsman.domain.answer import Response, Verdict
from draftsman.domain.question import Question
from draftsman.domain.wording import already_recorded
from draftsman.errors import NotPermitted, UsageError
from draftsman_bots.slack.listeners.people import admit, somebody
from draftsman_bots.slack.listeners.whisper import Said
from draftsman_bots.slack.place import user_of
from draftsman_bots.slack.text import escaped, mentioned, named

if TYPE_CHECKING:
    from draftsman.domain.actor import Actor
    from draftsman_bots.slack.inbound import Who
    from draftsman_bots.slack.listeners.desk import Desk


def response(key: str, **fields: Any) -> Response:
    """Return what is handed in under a key; raises UsageError in one line."""
    try:
        return Response(source_event_id=key, **fields)
    except ValidationError as error:
        name, problem = field_errors.first(error)
        raise UsageError(f"the {name or 'answer'} {problem}") from None


async def hand_in_of(desk: Desk, who: Who, job: int, question: int, given: Response) -> Verdict:
    """Hand in the response of whoever pressed something.

    Of people who are turned away it is kept as refused, as core keeps those of people who may not.
    Raises NotPermitted, NotFound, UsageError.
    """
    try:
        actor = await admit(desk, who)
    except NotPermitted as error:
        one = somebody(desk, who)
        await desk.rt.questions.refuse(job, question, given, one, str(error))
        raise
    return await hand_in(desk, actor, job, question, given)


async def hand_in(desk: Desk, actor: Actor, job: int, question: int, given: Response) -> Verdict:
    """Hand in a response; raises NotFound, and UsageError for what is no choice."""
    return await desk.rt.questions.answer(job, question, given, actor)


def chosen(question: Question, choice: int | None) -> str | None:
    """Return the value behind a button, None where the question has no such choice."""
    values = question.labels()
    return values[choice - 1] if choice is not None and choice <= len(values) else None


def worded(verdict: Verdict, user: str) -> Said:
    """Return what became of a response, for the person, by the id, who gave it."""
    if verdict.recorded:
        return Said(escaped(already_recorded(verdict)))
    if not verdict.accepted:
        why = mentioned(named(escaped(verdict.reason or "it was refused")), user_of(user))
        return Said(f"That did not count: {why}")
    if not verdict.resolved:
        return Said(f"{verdict.name}: your approval counts, {verdict.votes} of {verdict.quorum}.")
    ended = verdict.resolution or {}
    what = ended.get("value") or ended.get("text") or ""
    shown = f": {escaped(str(what), 300)}" if what else ""
    return Said(f"{verdict.name} is {escaped(str(ended.get('outcome', 'answered')))}{shown}.")


def is_news(verdict: Verdict) -> bool:
    """Return whether the person learns nothing of it from the question's own message."""
    return not verdict.accepted or (not verdict.resolved and not verdict.duplicate)
