"""What people ask about jobs, and do to them, in words: everything but a request."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from draftsman.domain.classify import ErrorClass
from draftsman.domain.ids import parse_job, parse_question
from draftsman.domain.question import QuestionKind
from draftsman.errors import UsageError
from draftsman_bots.slack.blocks import Block, actions, button, section
from draftsman_bots.slack.ids import CANCEL, RETRY, job_value
from draftsman_bots.slack.listeners import answers
from draftsman_bots.slack.listeners.whisper import Said
from draftsman_bots.slack.text import escaped, named, typed

if TYPE_CHECKING:
    from draftsman.domain.actor import Actor
    from draftsman.domain.job import Job
    from draftsman_bots.slack.grammar import Wish
    from draftsman_bots.slack.listeners.desk import Desk

LISTED: Final = 10
"""Jobs that a list shows."""
_AGAIN: Final = re.compile(r"(?:--|—|–)again", re.IGNORECASE)  # noqa: RUF001


async def grant(desk: Desk, actor: Actor, wish: Wish, key: str) -> Said:
    """Do what is wished and say what became of it; raises DraftsmanError with the reason."""
    return await _VERBS[wish.verb](desk, actor, wish, key)


async def _list(desk: Desk, actor: Actor, wish: Wish, key: str) -> Said:
    jobs = await desk.rt.inspect.jobs(limit=LISTED)
    if not jobs:
        return Said(f"No jobs yet; make one: `{desk.settings.command} fix TEXT`")
    lines = [
        f"*D-{job.number}* {str(job.status).replace('_', ' ')}:"
        f" {escaped(job.ticket_title or job.type, 120)}"
        for job in jobs
    ]
    return Said("\n".join(lines))


async def _status(desk: Desk, actor: Actor, wish: Wish, key: str) -> Said:
    if not wish.ref:
        return await _list(desk, actor, wish, key)
    job = await _job(desk, wish)
    why = await desk.rt.inspect.why(job.number)
    then = "".join(part if isinstance(part, str) else typed(part) for part in why.parts)
    said = f"*D-{job.number}* {escaped(job.ticket_title or job.type, 120)}"
    return Said(f"{said}\n{_state(job)}: {escaped(why.text)}\n{escaped(then)}")


async def _show(desk: Desk, actor: Actor, wish: Wish, key: str) -> Said:
    job = await _job(desk, wish)
    runs = await desk.rt.inspect.runs(job.number)
    asked = await desk.rt.questions.open(job.number)
    by = named(escaped(job.invoker_display_name or job.invoker_id, 100))
    lines = [
        f"*D-{job.number}* {escaped(job.ticket_title or job.type, 120)}",
        f"{_state(job)} · asked by {by} · {len(runs)} run{'' if len(runs) == 1 else 's'}",
    ]
    lines += [f"{one.name} waits: {escaped(one.text, 500)}" for one in asked]
    if job.last_error:
        denied = job.error_class == ErrorClass.DENIED
        lines.append(f"{'' if denied else 'last error: '}{escaped(job.last_error, 500)}")
    text = "\n".join(lines)
    return Said(text, [section(text), _controls(job)])


async def _cancel(desk: Desk, actor: Actor, wish: Wish, key: str) -> Said:
    job = await _job(desk, wish)
    return await cancel(desk, actor, job.number, wish.rest or None)


async def _retry(desk: Desk, actor: Actor, wish: Wish, key: str) -> Said:
    job = await _job(desk, wish)
    return await retry(desk, actor, job.number, again=bool(_AGAIN.fullmatch(wish.rest)))


async def cancel(desk: Desk, actor: Actor, job: int, reason: str | None = None) -> Said:
    """End a job; raises DraftsmanError."""
    done = await desk.rt.operate.cancel(job, actor, reason)
    return Said(f"D-{job} is told to stop." if done.requested else f"D-{job} is canceled.")


async def retry(desk: Desk, actor: Actor, job: int, *, again: bool = False) -> Said:
    """Make a new job of a finished one, `again` also where it completed; raises DraftsmanError."""
    made = await desk.rt.operate.retry(job, actor, again=again)
    return Said(f"{made.name} tries D-{job} again.")


async def _answer(desk: Desk, actor: Actor, wish: Wish, key: str) -> Said:
    job, ordinal = await _question(desk, wish)
    if not wish.rest:
        raise UsageError(f"say what the answer is: answer D-{job}/{ordinal} TEXT")
    given = answers.response(key, text=wish.rest)
    return answers.worded(await answers.hand_in(desk, actor, job, ordinal, given), actor.id)


async def _approve(desk: Desk, actor: Actor, wish: Wish, key: str) -> Said:
    return await _decide(desk, actor, wish, key, approved=True)


async def _deny(desk: Desk, actor: Actor, wish: Wish, key: str) -> Said:
    return await _decide(desk, actor, wish, key, approved=False)


async def _decide(desk: Desk, actor: Actor, wish: Wish, key: str, *, approved: bool) -> Said:
    job, ordinal = await _question(desk, wish)
    given = answers.response(key, decision=approved, reason=wish.rest or None)
    return answers.worded(await answers.hand_in(desk, actor, job, ordinal, given), actor.id)


async def _job(desk: Desk, wish: Wish) -> Job:
    if not wish.ref:
        raise UsageError(f"which job? name it: {wish.verb} D-142; see: list")
    ref, _ = parse_question(wish.ref)
    return await desk.rt.inspect.job(await desk.rt.inspect.resolve(ref))


async def _question(desk: Desk, wish: Wish) -> tuple[int, int]:
    """Return job and ordinal; of a job alone the open question is named, and never guessed."""
    if not wish.ref:
        raise UsageError(f"which question? name it: {wish.verb} D-142/1")
    ref, ordinal = parse_question(wish.ref)
    job = await desk.rt.inspect.resolve(parse_job(str(ref.number)) if ref.number else ref)
    if ordinal is not None:
        return job, ordinal
    asked = await desk.rt.questions.open(job)
    if not asked:
        raise UsageError(f"D-{job} waits for nobody")
    verb = "approve" if asked[0].kind is QuestionKind.APPROVAL else "answer"
    raise UsageError(f"name the question: {verb} {asked[0].name}: {asked[0].text[:200]}")


def _state(job: Job) -> str:
    return str(job.status).replace("_", " ")


def _controls(job: Job) -> Block:
    ended = job.finished_at is not None
    made = button("Retry", RETRY, job_value(job.number))
    if not ended:
        made = button("Cancel", CANCEL, job_value(job.number), "danger", f"Cancel D-{job.number}?")
    return actions([made])


_VERBS: Final[dict[str, Callable[[Desk, Actor, Wish, str], Awaitable[Said]]]] = {
    "list": _list,
    "status": _status,
    "show": _show,
    "cancel": _cancel,
    "retry": _retry,
    "answer": _answer,
    "approve": _approve,
    "deny": _deny,
}
