"""Text commands on jobs and questions, except requests."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from draftsman.domain.ids import parse_job, parse_question
from draftsman.domain.question import QuestionKind
from draftsman.domain.retries.error_classes import ErrorClass
from draftsman.errors import UsageError
from draftsman_bots.slack.ids import CANCEL, RETRY, job_value
from draftsman_bots.slack.mrkdwn import chat_command, escape_truncated, with_display_names
from draftsman_bots.slack.outbound.blocks import Block, actions, button, section
from draftsman_bots.slack.usecases import answers
from draftsman_bots.slack.usecases.ephemeral import Reply

if TYPE_CHECKING:
    from draftsman.domain.job import Job
    from draftsman.domain.people.actor import Actor
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.parsers.command_parser import TextCommand

MAX_LISTED: Final = 10
"""Jobs that a list shows."""
_AGAIN: Final = re.compile(r"(?:--|—|–)again", re.IGNORECASE)  # noqa: RUF001


async def execute(desk: BotContext, actor: Actor, wish: TextCommand, key: str) -> Reply:
    """Execute a command; raises DraftsmanError."""
    return await _VERBS[wish.verb](desk, actor, wish, key)


async def _list(desk: BotContext, actor: Actor, wish: TextCommand, key: str) -> Reply:
    jobs = await desk.rt.read_model.jobs(limit=MAX_LISTED)
    if not jobs:
        return Reply(f"No jobs yet. Start one: `{desk.settings.command} fix TEXT`")
    lines = [
        f"*D-{job.number}* {str(job.status).replace('_', ' ')}:"
        f" {escape_truncated(job.ticket_title or job.type, 120)}"
        for job in jobs
    ]
    return Reply("\n".join(lines))


async def _status(desk: BotContext, actor: Actor, wish: TextCommand, key: str) -> Reply:
    if not wish.ref:
        return await _list(desk, actor, wish, key)
    job = await _job(desk, wish)
    why = await desk.rt.read_model.why(job.number)
    then = "".join(part if isinstance(part, str) else chat_command(part) for part in why.parts)
    said = f"*D-{job.number}* {escape_truncated(job.ticket_title or job.type, 120)}"
    return Reply(f"{said}\n{_state(job)}: {escape_truncated(why.text)}\n{escape_truncated(then)}")


async def _show(desk: BotContext, actor: Actor, wish: TextCommand, key: str) -> Reply:
    job = await _job(desk, wish)
    runs = await desk.rt.read_model.runs(job.number)
    asked = await desk.rt.questions.open(job.number)
    by = with_display_names(escape_truncated(job.invoker_display_name or job.invoker_id, 100))
    lines = [
        f"*D-{job.number}* {escape_truncated(job.ticket_title or job.type, 120)}",
        f"{_state(job)} · requested by {by} · {len(runs)} run{'' if len(runs) == 1 else 's'}",
    ]
    lines += [f"{one.name} is open: {escape_truncated(one.text, 500)}" for one in asked]
    if job.last_error:
        denied = job.error_class == ErrorClass.DENIED
        lines.append(f"{'' if denied else 'last error: '}{escape_truncated(job.last_error, 500)}")
    text = "\n".join(lines)
    return Reply(text, [section(text), _controls(job)])


async def _cancel(desk: BotContext, actor: Actor, wish: TextCommand, key: str) -> Reply:
    job = await _job(desk, wish)
    return await cancel(desk, actor, job.number, wish.rest or None)


async def _retry(desk: BotContext, actor: Actor, wish: TextCommand, key: str) -> Reply:
    job = await _job(desk, wish)
    return await retry(desk, actor, job.number, again=bool(_AGAIN.fullmatch(wish.rest)))


async def cancel(desk: BotContext, actor: Actor, job: int, reason: str | None = None) -> Reply:
    """Cancel a job; raises DraftsmanError."""
    done = await desk.rt.job_control.cancel(job, actor, reason)
    return Reply(f"D-{job} is being canceled." if done.requested else f"D-{job} is canceled.")


async def retry(desk: BotContext, actor: Actor, job: int, *, again: bool = False) -> Reply:
    """Retry a finished job, with `again` also a completed job; raises DraftsmanError."""
    made = await desk.rt.job_control.retry(job, actor, again=again)
    return Reply(f"{made.name} retries D-{job}.")


async def _answer(desk: BotContext, actor: Actor, wish: TextCommand, key: str) -> Reply:
    job, ordinal = await _question(desk, wish)
    if not wish.rest:
        raise UsageError(f"the answer is missing: answer D-{job}/{ordinal} TEXT")
    given = answers.build_response(key, text=wish.rest)
    return answers.verdict_reply(
        await answers.submit_answer(desk, actor, job, ordinal, given), actor.id
    )


async def _approve(desk: BotContext, actor: Actor, wish: TextCommand, key: str) -> Reply:
    return await _decide(desk, actor, wish, key, approved=True)


async def _deny(desk: BotContext, actor: Actor, wish: TextCommand, key: str) -> Reply:
    return await _decide(desk, actor, wish, key, approved=False)


async def _decide(
    desk: BotContext, actor: Actor, wish: TextCommand, key: str, *, approved: bool
) -> Reply:
    job, ordinal = await _question(desk, wish)
    given = answers.build_response(key, decision=approved, reason=wish.rest or None)
    return answers.verdict_reply(
        await answers.submit_answer(desk, actor, job, ordinal, given), actor.id
    )


async def _job(desk: BotContext, wish: TextCommand) -> Job:
    if not wish.ref:
        raise UsageError(f"a job is required: {wish.verb} D-142; see: list")
    ref, _ = parse_question(wish.ref)
    return await desk.rt.read_model.job(await desk.rt.read_model.resolve(ref))


async def _question(desk: BotContext, wish: TextCommand) -> tuple[int, int]:
    """Return job and ordinal; for a job without an ordinal, raise UsageError with its question."""
    if not wish.ref:
        raise UsageError(f"a question is required: {wish.verb} D-142/1")
    ref, ordinal = parse_question(wish.ref)
    job = await desk.rt.read_model.resolve(parse_job(str(ref.number)) if ref.number else ref)
    if ordinal is not None:
        return job, ordinal
    asked = await desk.rt.questions.open(job)
    if not asked:
        raise UsageError(f"D-{job} has no open question")
    verb = "approve" if asked[0].kind is QuestionKind.APPROVAL else "answer"
    raise UsageError(f"a question is required: {verb} {asked[0].name}: {asked[0].text[:200]}")


def _state(job: Job) -> str:
    return str(job.status).replace("_", " ")


def _controls(job: Job) -> Block:
    ended = job.finished_at is not None
    made = button("Retry", RETRY, job_value(job.number))
    if not ended:
        made = button("Cancel", CANCEL, job_value(job.number), "danger", f"Cancel D-{job.number}?")
    return actions([made])


_VERBS: Final[dict[str, Callable[[BotContext, Actor, TextCommand, str], Awaitable[Reply]]]] = {
    "list": _list,
    "status": _status,
    "show": _show,
    "cancel": _cancel,
    "retry": _retry,
    "answer": _answer,
    "approve": _approve,
    "deny": _deny,
}
