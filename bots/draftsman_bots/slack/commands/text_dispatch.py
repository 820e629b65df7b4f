"""Parsing and execution of text that is addressed to the bot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from draftsman_bots.slack.commands import command_parser
from draftsman_bots.slack.commands.command_parser import (
    InvalidText,
    JobRequest,
    Parsed,
    ScheduleRequest,
    TextCommand,
)
from draftsman_bots.slack.deliveries.mrkdwn import escape, escape_truncated
from draftsman_bots.slack.deliveries.render import BOT_NAME
from draftsman_bots.slack.ephemeral import Reply, ReplyTarget
from draftsman_bots.slack.jobs import job_commands
from draftsman_bots.slack.people import web_link
from draftsman_bots.slack.people.access import authorize, authorize_person
from draftsman_bots.slack.requests import job_requests, templates
from draftsman_bots.slack.schedules import schedules

if TYPE_CHECKING:
    from draftsman.jobs.requests.invocation import RecentDuplicate
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.people.actor import Actor
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import SlackUser
    from draftsman_bots.slack.requests.job_requests import RequestOrigin

USAGE: Final = """\
`{0} fix TEXT` makes the requested change; `{0} investigate TEXT` looks and changes nothing
Options (before or after TEXT): `--repo=NAME`, `--agent=NAME`, `--ref=BRANCH`, `--mode=MODE`
Quoted text is never an option: `{0} fix "--repo is read twice"`; `--` ends the options
`{0} status [D-142]`, `{0} list`, `{0} show D-142`
`{0} tell D-142 TEXT` sends a message to the agent of a job
`{0} pause D-142 REASON`, `{0} resume D-142`
`{0} cancel D-142 [REASON]`, `{0} retry D-142 [--again]`
`{0} answer D-142/1 TEXT`, `{0} approve D-142/1 [REASON]`, `{0} deny D-142/1 [REASON]`
`{0} ack D-142/1 [1h]`, `{0} snooze D-142/1 [2h]`, `{0} delegate D-142/1 to PERSON [1h]`
`{0} templates [TEXT]` lists templates; `{0} template NAME` opens its form, or
`{0} template NAME PARAMETER=VALUE …` submits its job at once
`{0} every weekday at 9 TEXT`, `{0} every 90m TEXT`, `{0} tomorrow at 14:00 TEXT` add a schedule;
instead of TEXT also `template NAME PARAMETER=VALUE …`; `{0} schedules [TEXT]` lists schedules
`{0} link` links your account to a person in the configuration; `{0} web` signs you in to the web
inbox; `{0} help` shows this help
In the thread of a job {1}: `{2}ANSWER`, or for an approval `{2}approve` or `{2}deny REASON`
While a question there accepts text, a mention is its answer: use `{0}` for commands\
"""


def usage(ctx: BotContext) -> Reply:
    """Return the help text."""
    action, prefix = ("reply", "") if ctx.identity.reads_replies else ("mention me", f"{BOT_NAME} ")
    return Reply(USAGE.format(ctx.settings.command, action, prefix))


async def dispatch_text(
    ctx: BotContext, user: SlackUser, channel: str, origin: RequestOrigin, text: str
) -> Reply | None:
    """Execute the text; None if there is no reply. Raises DraftsmanError."""
    parsed = command_parser.parse(text)
    actor = await _authorize(ctx, user, channel, parsed)
    match parsed:
        case JobRequest() as request:
            submitted = await job_requests.submit(ctx, actor, origin, request)
            return await _submission_reply(ctx, submitted, origin)
        case TextCommand("help"):
            return usage(ctx)
        case TextCommand("link"):
            return await _link_reply(ctx, actor)
        case TextCommand("web"):
            return await web_link.create(ctx, actor, origin)
        case ScheduleRequest() as request:
            return await schedules.propose(ctx, actor, channel, user.id, request)
        case TextCommand("schedules", argument=argument):
            return await schedules.list_schedules(ctx, actor, argument)
        case TextCommand("templates", argument=argument):
            return await templates.list_templates(ctx, argument)
        case TextCommand("template" | "run", argument=argument):
            reply_target = ReplyTarget(user.id, channel)
            result = await templates.run_template(ctx, actor, origin, reply_target, argument)
            if isinstance(result, Reply):
                return result
            return await _submission_reply(ctx, result, origin)
        case TextCommand() as command:
            return await job_commands.execute(ctx, actor, command, origin.key)
        case InvalidText(invalid, reason):
            return _invalid_reply(ctx, invalid, reason)
        case unknown:
            assert_never(unknown)


async def _authorize(ctx: BotContext, user: SlackUser, channel: str, parsed: Parsed) -> Actor:
    """Return the actor of a text; raises NotPermitted.

    Help and links to a person are for all users, and the channels that accept requests limit
    neither these nor the web inbox.
    """
    match parsed:
        case TextCommand("help" | "link") | InvalidText():
            return await authorize(ctx, user)
        case TextCommand("web"):
            return await authorize_person(ctx, user)
        case _:
            return await authorize_person(ctx, user, channel)


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
        f"{_confirmation(submitted)}\nYou made the same request {duplicate.age:.0f} s ago:"
        f" D-{duplicate.number} ({escape(state)}). To cancel the duplicate:"
        f" `{ctx.settings.command} cancel {submitted.name}`"
    )


def _confirmation(submitted: SubmittedJob) -> str:
    return f"{submitted.name} is {escape(str(submitted.status))}. Updates follow."


async def _link_reply(ctx: BotContext, actor: Actor) -> Reply:
    code = await ctx.rt.people.create_link_code(actor)
    return Reply(
        "In a terminal where draftsman knows you, run this within 15 minutes:"
        f" `draftsman people link {code}`. The code works once; do not share it."
    )


def _invalid_reply(ctx: BotContext, text: str, reason: str) -> Reply:
    if reason:
        return Reply(escape_truncated(reason))
    first = escape_truncated(text.split(None, 1)[0], 60) if text else ""
    verbs = ", ".join((*command_parser.REQUESTS, *command_parser.VERBS, "every"))
    example = escape_truncated(f"fix {text}", 80)
    return Reply(
        f"Unknown command: {first}. A request begins with `fix` or `investigate`: {example}\n"
        f"Commands: {verbs}."
    )
