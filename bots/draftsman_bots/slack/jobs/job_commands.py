"""Text commands on jobs and questions, except requests."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from draftsman.errors import UsageError
from draftsman.formats.amounts import counted
from draftsman.ids import job_name, parse_job, parse_question
from draftsman.jobs.retries import ErrorClass
from draftsman.people.spans import ActorRef
from draftsman.text import humanize
from draftsman_bots.conversation import attention as attention_commands
from draftsman_bots.conversation import job_controls
from draftsman_bots.conversation.answers import build_response
from draftsman_bots.slack.deliveries.blocks import Block, actions, button, section
from draftsman_bots.slack.deliveries.mrkdwn import (
    chat_command,
    escape_truncated,
    mention,
)
from draftsman_bots.slack.ephemeral import Reply
from draftsman_bots.slack.ids import CANCEL, RETRY, job_value
from draftsman_bots.slack.jobs import thread_messages
from draftsman_bots.slack.questions import answers

if TYPE_CHECKING:
    from draftsman.jobs.details.wait_reason import WaitReason
    from draftsman.jobs.job import Job
    from draftsman.people.actor import Actor
    from draftsman_bots.conversation.parser import ParsedText
    from draftsman_bots.slack.context import BotContext

MAX_LISTED: Final = 10
"""Jobs that a list shows."""
_AGAIN: Final = re.compile(r"(?:--|—|–)again", re.IGNORECASE)  # noqa: RUF001


async def execute(ctx: BotContext, actor: Actor, command: ParsedText, key: str) -> Reply:
    """Execute a command; raises DraftsmanError."""
    return await _VERBS[command.verb](ctx, actor, command, key)


async def _list(ctx: BotContext, actor: Actor, command: ParsedText, key: str) -> Reply:
    jobs = await ctx.rt.read_model.jobs(limit=MAX_LISTED)
    if not jobs:
        return Reply(f"No jobs yet. Start one: `{ctx.settings.command} fix TEXT`")
    lines = [
        f"*D-{job.number}* {'paused' if job.shown_as_paused else humanize(job.status)}:"
        f" {escape_truncated(job.ticket_title or job.type, 120)}"
        for job in jobs
    ]
    return Reply("\n".join(lines))


async def _status(ctx: BotContext, actor: Actor, command: ParsedText, key: str) -> Reply:
    if not command.ref:
        return await _list(ctx, actor, command, key)
    job = await _job(ctx, command)
    reason = await ctx.rt.read_model.why(job.number)
    hint = "".join(
        part if isinstance(part, str) else chat_command(part) for part in reason.next_spans
    )
    heading = f"*D-{job.number}* {escape_truncated(job.ticket_title or job.type, 120)}"
    text = f"{_status_text(reason)}: {escape_truncated(reason.text)}"
    return Reply(f"{heading}\n{text}\n{escape_truncated(hint)}")


async def _show(ctx: BotContext, actor: Actor, command: ParsedText, key: str) -> Reply:
    job = await _job(ctx, command)
    reason = await ctx.rt.read_model.why(job.number)
    runs = await ctx.rt.read_model.runs(job.number)
    questions = await ctx.rt.questions.open(job.number)
    invoker = mention(ActorRef(job.invoker_id, job.invoker_display_name or ""))
    run_count = counted(len(runs), "run")
    lines = [
        f"*D-{job.number}* {escape_truncated(job.ticket_title or job.type, 120)}",
        f"{_status_text(reason)} · requested by {invoker} · {run_count}",
    ]
    lines += [
        f"{question.name} is open: {escape_truncated(question.text, 500)}" for question in questions
    ]
    if job.last_error:
        denied = job.error_class == ErrorClass.DENIED
        lines.append(f"{'' if denied else 'last error: '}{escape_truncated(job.last_error, 500)}")
    text = "\n".join(lines)
    return Reply(text, [section(text), _controls(job)])


async def _tell(ctx: BotContext, actor: Actor, command: ParsedText, key: str) -> Reply:
    job = await _job(ctx, command)
    return await thread_messages.send(ctx, actor, job.number, command.text, key)


async def _change(ctx: BotContext, actor: Actor, command: ParsedText, key: str) -> Reply:
    job = (await _job(ctx, command)).number
    text = await job_controls.change(ctx.rt, job, actor, command.verb, command.text, key)
    if command.verb == "pause":
        text += f" To continue it: `{ctx.settings.command} resume {job_name(job)}`"
    return Reply(text)


async def _retry(ctx: BotContext, actor: Actor, command: ParsedText, key: str) -> Reply:
    job = await _job(ctx, command)
    return await retry(ctx, actor, job.number, again=bool(_AGAIN.fullmatch(command.text)))


async def cancel(ctx: BotContext, actor: Actor, job: int) -> Reply:
    """Cancel a job; raises DraftsmanError."""
    return Reply(await job_controls.change(ctx.rt, job, actor, "cancel", "", ""))


async def retry(ctx: BotContext, actor: Actor, job: int, *, again: bool = False) -> Reply:
    """Retry a finished job, with `again` also a completed job; raises DraftsmanError."""
    retried = await ctx.rt.job_control.retry(job, actor, again=again)
    return Reply(f"{retried.name} retries D-{job}.")


async def _answer(ctx: BotContext, actor: Actor, command: ParsedText, key: str) -> Reply:
    job, ordinal = await _question(ctx, command)
    if not command.text:
        raise UsageError(f"the answer is missing: answer D-{job}/{ordinal} TEXT")
    response = build_response(key, text=command.text)
    verdict = await ctx.rt.questions.answer(job, ordinal, response, actor)
    return await answers.reply_to(ctx, verdict)


async def _approve(ctx: BotContext, actor: Actor, command: ParsedText, key: str) -> Reply:
    return await _decide(ctx, actor, command, key, approved=True)


async def _deny(ctx: BotContext, actor: Actor, command: ParsedText, key: str) -> Reply:
    return await _decide(ctx, actor, command, key, approved=False)


async def _decide(
    ctx: BotContext, actor: Actor, command: ParsedText, key: str, *, approved: bool
) -> Reply:
    job, ordinal = await _question(ctx, command)
    response = build_response(key, decision=approved, reason=command.text or None)
    verdict = await ctx.rt.questions.answer(job, ordinal, response, actor)
    return await answers.reply_to(ctx, verdict)


async def _attend(ctx: BotContext, actor: Actor, command: ParsedText, key: str) -> Reply:
    question = await _question(ctx, command)
    return await attend(ctx, actor, command.verb, question, command.text)


async def attend(
    ctx: BotContext, actor: Actor, verb: str, question: tuple[int, int], text: str = ""
) -> Reply:
    """Acknowledge, snooze or delegate a question; raises DraftsmanError."""
    reply = await attention_commands.execute(ctx.rt, actor, verb, question, text)
    return answers.attention_reply(reply)


async def _job(ctx: BotContext, command: ParsedText) -> Job:
    if not command.ref:
        raise UsageError(f"a job is required: {command.verb} D-142; see: list")
    ref, _ = parse_question(command.ref)
    return await ctx.rt.read_model.job(await ctx.rt.read_model.resolve(ref))


async def _question(ctx: BotContext, command: ParsedText) -> tuple[int, int]:
    """Return job and ordinal; for a job without an ordinal, raise UsageError with its questions."""
    if not command.ref:
        raise UsageError(f"a question is required: {command.verb} D-142/1")
    ref, ordinal = parse_question(command.ref)
    job = await ctx.rt.read_model.resolve(parse_job(str(ref.number)) if ref.number else ref)
    if ordinal is not None:
        return job, ordinal
    questions = await ctx.rt.questions.open(job)
    if not questions:
        raise UsageError(f"D-{job} has no open question")
    listed = "; ".join(
        f"{question.verb} {question.name}: {question.text[:200]}" for question in questions
    )
    raise UsageError(f"a question is required: {listed}")


def _status_text(reason: WaitReason) -> str:
    status = humanize(reason.status)
    return f"paused ({status})" if reason.shown_as_paused else status


def _controls(job: Job) -> Block:
    ended = job.finished_at is not None
    control = button("Retry", RETRY, job_value(job.number))
    if not ended:
        control = button(
            "Cancel",
            CANCEL,
            job_value(job.number),
            style="danger",
            confirm=f"Cancel D-{job.number}?",
        )
    return actions([control])


_VERBS: Final[dict[str, Callable[[BotContext, Actor, ParsedText, str], Awaitable[Reply]]]] = {
    "list": _list,
    "status": _status,
    "show": _show,
    "tell": _tell,
    **dict.fromkeys(job_controls.VERBS, _change),
    "retry": _retry,
    "answer": _answer,
    "approve": _approve,
    "deny": _deny,
    **dict.fromkeys(attention_commands.VERBS, _attend),
}
