"""Parsing and execution of text that is addressed to the bot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.actions.action import Call
from draftsman.actions.people import create_link_code
from draftsman.formats.times import span
from draftsman_bots.conversation.commands import (
    Access,
    Surface,
    command_names,
    help_lines,
    near_command,
)
from draftsman_bots.conversation.parser import ParsedText
from draftsman_bots.conversation.replies import respond_to_command
from draftsman_bots.conversation.requests import JobRequest, ScheduleRequest
from draftsman_bots.slack.deliveries.mrkdwn import escape, escape_truncated, inline_code
from draftsman_bots.slack.deliveries.render import BOT_NAME
from draftsman_bots.slack.ephemeral import Reply, spoken
from draftsman_bots.slack.jobs import job_commands
from draftsman_bots.slack.people import web_link
from draftsman_bots.slack.people.access import SlackConversation, authorize, authorize_person
from draftsman_bots.slack.requests import job_requests, templates
from draftsman_bots.slack.schedules import schedules

if TYPE_CHECKING:
    from draftsman.jobs.requests.invocation import RecentDuplicate
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.people.actor import Actor
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.people.user import SlackUser
    from draftsman_bots.slack.requests.job_requests import RequestOrigin

NOTES: Final = """\
Options of requests (before or after TEXT): `--repo=NAME`, `--agent=NAME`, `--ref=BRANCH`,
`--mode=MODE`. `--` ends the options
Quoted text is never an option: `{0} fix "--repo is read twice"`
In the thread of a job {1}: `{2}ANSWER`, or for an approval `{2}approve`, `{2}deny REASON` or
`{2}request-changes TEXT`
While a question there accepts text, a mention is its answer: use `{0}` for commands\
"""


def usage(ctx: BotContext) -> Reply:
    """Return the help text."""
    action, prefix = ("reply", "") if ctx.identity.reads_replies else ("mention me", f"{BOT_NAME} ")
    command = ctx.settings.command
    lines = [f"`{usage}` {text}" for usage, text in help_lines(Surface.SLACK, command)]
    return Reply("\n".join([*lines, NOTES.format(command, action, prefix)]))


async def dispatch_text(
    ctx: BotContext, user: SlackUser, channel: str, origin: RequestOrigin, parsed: ParsedText
) -> Reply | None:
    """Execute a text; None if there is no reply. Raises DraftsmanError."""
    if parsed.command is not None and parsed.command.action is not None:
        conversation = SlackConversation(ctx, user, Access.REQUESTER, channel)
        return spoken(await respond_to_command(conversation, parsed, origin.key), shown=True)
    actor = await _authorize(ctx, user, channel, parsed)
    if parsed.problem:
        return Reply(escape_truncated(parsed.problem))
    match parsed.request:
        case JobRequest() as request:
            submitted = await job_requests.submit(ctx, actor, origin, request)
            return await _submission_reply(ctx, submitted, origin)
        case ScheduleRequest() as request:
            return await schedules.propose(ctx, actor, channel, user.id, request)
    name = parsed.command.name if parsed.command else ""
    if name in job_commands.READ:
        return await job_commands.READ[name](ctx, ctx.rt.seen_by(actor), parsed)
    if name == "template":
        result = await templates.run_template(ctx, actor, origin, parsed.text)
        return result if isinstance(result, Reply) else await _submission_reply(ctx, result, origin)
    return await _answer_command(ctx, actor, origin, parsed)


async def _answer_command(
    ctx: BotContext, actor: Actor, origin: RequestOrigin, parsed: ParsedText
) -> Reply:
    """Return the reply to a command that changes nothing of a job."""
    match parsed.command.name if parsed.command else "":
        case "help":
            return usage(ctx)
        case "link":
            return await _link_reply(ctx, actor)
        case "web":
            return await web_link.create(ctx, actor, origin)
        case "schedules":
            return await schedules.list_schedules(ctx, actor, parsed.text)
        case "templates":
            return await templates.list_templates(ctx, parsed.text)
    return _unknown_reply(parsed.literal)


async def _authorize(ctx: BotContext, user: SlackUser, channel: str, parsed: ParsedText) -> Actor:
    """Return the actor of a text; raises NotPermitted.

    The channels that accept requests limit neither help and links nor the web inbox.
    """
    access = parsed.command.access if parsed.command else Access.EVERYBODY
    if parsed.problem or access is Access.EVERYBODY:
        return await authorize(ctx, user)
    return await authorize_person(ctx, user, channel if access is Access.REQUESTER else "")


async def _submission_reply(
    ctx: BotContext, submitted: SubmittedJob | None, origin: RequestOrigin
) -> Reply | None:
    """Return the reply to a request; None for a repeated delivery, which has had its reply."""
    if submitted is None or submitted.outcome == "deduplicated":
        return None
    duplicate = (
        await job_requests.recent_duplicate(ctx, submitted, origin)
        if submitted.outcome == "created"
        else None
    )
    if duplicate is None:
        return Reply(_confirmation(submitted))
    return duplicate_reply(ctx, submitted, duplicate)


def duplicate_reply(ctx: BotContext, submitted: SubmittedJob, duplicate: RecentDuplicate) -> Reply:
    """Return the reply to a request like a recent one."""
    state = str(duplicate.status).replace("_", " ")
    return Reply(
        f"{_confirmation(submitted)}\nYou made the same request {span(round(duplicate.age))} ago:"
        f" D-{duplicate.number} ({escape(state)}). To cancel the duplicate:"
        f" `{ctx.settings.command} cancel {submitted.name}`"
    )


def _confirmation(submitted: SubmittedJob) -> str:
    return f"{submitted.name} is {escape(str(submitted.status))}. Updates follow."


async def _link_reply(ctx: BotContext, actor: Actor) -> Reply:
    result = await create_link_code(Call(ctx.rt, actor), (actor.channel, actor.id))
    return Reply(
        "In a terminal where draftsman knows you, run this within 15 minutes:"
        f" `draftsman people link {result.value}`. The code works once; do not share it."
    )


def _unknown_reply(text: str) -> Reply:
    first, *rest = text.split(None, 1)
    near = near_command(first, Surface.SLACK)
    line = " ".join(["/draftsman", near or "fix", *(rest if near else [text.strip()])])
    advice = f"Did you mean `{near}`?" if near else "A request begins with `fix` or `investigate`:"
    return Reply(
        f"Unknown command: {escape_truncated(first, 60)}. {advice} {inline_code(line, 90)}\n"
        f"Commands: {command_names(Surface.SLACK)}."
    )
