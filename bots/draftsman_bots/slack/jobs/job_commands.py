"""Commands that show jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from draftsman.actions import jobs as actions
from draftsman.errors import UsageError
from draftsman.formats.amounts import counted
from draftsman.ids import parse_question
from draftsman.jobs.retries import ErrorClass
from draftsman.jobs.status_display import display_of
from draftsman.people.spans import ActorRef
from draftsman_bots.slack.controls import job_button
from draftsman_bots.slack.deliveries.blocks import Block, section
from draftsman_bots.slack.deliveries.blocks import actions as controls_row
from draftsman_bots.slack.deliveries.mrkdwn import chat_command, escape_truncated, mention
from draftsman_bots.slack.ephemeral import Reply

if TYPE_CHECKING:
    from draftsman.actions.action import Action
    from draftsman.jobs.details.wait_reason import WaitReason
    from draftsman.jobs.job import Job
    from draftsman.runtime import Runtime
    from draftsman_bots.conversation.parser import ParsedText
    from draftsman_bots.slack.context import BotContext

MAX_LISTED: Final = 10
"""Jobs that a list shows."""


async def list_jobs(ctx: BotContext, rt: Runtime, command: ParsedText) -> Reply:
    """Return the newest jobs."""
    jobs = await rt.read_model.jobs(limit=MAX_LISTED)
    if not jobs:
        return Reply(f"No jobs yet. Start one: `{ctx.settings.command} fix TEXT`")
    lines = [
        f"*D-{job.number}* {display_of(job.status, paused=job.shown_as_paused).word}:"
        f" {escape_truncated(job.title, 120)}"
        for job in jobs
    ]
    return Reply("\n".join(lines))


async def _status(ctx: BotContext, rt: Runtime, command: ParsedText) -> Reply:
    if not command.ref:
        return await list_jobs(ctx, rt, command)
    job = await _job(rt, command)
    reason = await rt.read_model.why(job.number)
    heading = f"*D-{job.number}* {escape_truncated(job.title, 120)}"
    lines = (reason.statement, *reason.next_lines(chat_command))
    return Reply("\n".join([heading, *map(escape_truncated, lines)]))


async def _show(_: BotContext, rt: Runtime, command: ParsedText) -> Reply:
    job = await _job(rt, command)
    reason = await rt.read_model.why(job.number)
    runs = await rt.read_model.runs(job.number)
    questions = await rt.questions.open(job.number)
    invoker = mention(ActorRef(job.invoker_id, job.invoker_display_name or ""))
    run_count = counted(len(runs), "run")
    status = display_of(reason.status, paused=reason.shown_as_paused).word
    lines = [
        f"*D-{job.number}* {escape_truncated(job.title, 120)}",
        f"{status} · requested by {invoker} · {run_count}",
    ]
    lines += [
        f"{question.name} is open: {escape_truncated(question.text, 500)}" for question in questions
    ]
    if job.last_error:
        denied = job.error_class == ErrorClass.DENIED
        lines.append(f"{'' if denied else 'last error: '}{escape_truncated(job.last_error, 500)}")
    text = "\n".join(lines)
    return Reply(text, [section(text), _controls(job, reason)])


async def _job(rt: Runtime, command: ParsedText) -> Job:
    if not command.ref:
        raise UsageError(f"a job is required: {command.verb} D-142; see: list")
    ref, _ = parse_question(command.ref)
    return await rt.read_model.job(await rt.read_model.resolve(ref))


def _controls(job: Job, reason: WaitReason) -> Block:
    shown: list[Action[int, ..., Any]] = [
        actions.cancel if job.finished_at is None else actions.retry
    ]
    if not actions.dismiss.problem(reason):
        shown.append(actions.dismiss)
    return controls_row([job_button(action, job.number) for action in shown])


READ: Final = {"list": list_jobs, "status": _status, "show": _show}
"""Commands that change nothing."""
