"""Parsing and execution of text that is addressed to the bot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from draftsman_bots.slack.mrkdwn import escape, escape_truncated
from draftsman_bots.slack.outbound.question_blocks import BOT_NAME
from draftsman_bots.slack.parsers import command_parser
from draftsman_bots.slack.parsers.command_parser import InvalidText, JobRequest, TextCommand
from draftsman_bots.slack.usecases import job_commands, job_requests
from draftsman_bots.slack.usecases.access import authorize, authorize_person
from draftsman_bots.slack.usecases.ephemeral import Reply

if TYPE_CHECKING:
    from draftsman.services.jobs.submissions import SubmittedJob
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.parsers.payloads import SlackUser
    from draftsman_bots.slack.usecases.job_requests import RequestOrigin

USAGE: Final = """\
`{0} fix TEXT` makes the requested change; `{0} investigate TEXT` looks and changes nothing
Options (before or after TEXT): `--repo=NAME`, `--agent=NAME`, `--ref=BRANCH`, `--mode=MODE`
Quoted text is never an option: `{0} fix "--repo is read twice"`; `--` ends the options
`{0} status [D-142]`, `{0} list`, `{0} show D-142`
`{0} cancel D-142 [REASON]`, `{0} retry D-142 [--again]`
`{0} answer D-142/1 TEXT`, `{0} approve D-142/1 [REASON]`, `{0} deny D-142/1 [REASON]`
`{0} link` links your account to a person in the configuration; `{0} help` shows this help
In the thread of a job {1}: `{2}ANSWER`, or for an approval `{2}approve` or `{2}deny REASON`
While a question there accepts text, a mention is its answer: use `{0}` for commands\
"""


def usage(desk: BotContext) -> Reply:
    """Return the help text."""
    how, call = ("reply", "") if desk.identity.reads_replies else ("mention me", f"{BOT_NAME} ")
    return Reply(USAGE.format(desk.settings.command, how, call))


async def dispatch_text(
    desk: BotContext, who: SlackUser, channel: str, asked: RequestOrigin, text: str
) -> Reply | None:
    """Execute the text; None if there is no reply. Raises DraftsmanError."""
    match command_parser.parse(text):
        case JobRequest() as request:
            actor = await authorize_person(desk, who, channel)
            return await _made(desk, await job_requests.submit(desk, actor, asked, request), asked)
        case TextCommand("help"):
            await authorize(desk, who)
            return usage(desk)
        case TextCommand("link"):
            return await _link(desk, who)
        case TextCommand() as wish:
            actor = await authorize_person(desk, who, channel)
            return await job_commands.execute(desk, actor, wish, asked.key)
        case InvalidText(said, why):
            await authorize(desk, who)
            return _unclear(desk, said, why)
        case unknown:
            assert_never(unknown)


async def _made(desk: BotContext, made: SubmittedJob | None, asked: RequestOrigin) -> Reply | None:
    """Return the reply to a request; None for a repeated delivery, which has had its reply."""
    if made is None or made.how == "deduplicated":
        return None
    said = f"{made.name} is {escape(str(made.status))}. Updates follow."
    other = (
        await job_requests.recent_duplicate(desk, made, asked) if made.how == "created" else None
    )
    if other is None:
        return Reply(said, news=False)
    state = str(other.status).replace("_", " ")
    return Reply(
        f"{said}\nYou made the same request {other.ago:.0f} s ago: D-{other.number}"
        f" ({escape(state)}). To cancel the duplicate: `{desk.settings.command} cancel {made.name}`"
    )


async def _link(desk: BotContext, who: SlackUser) -> Reply:
    actor = await authorize(desk, who)
    code = await desk.rt.people.create_link_code(actor)
    return Reply(
        "In a terminal where draftsman knows you, run this within 15 minutes:"
        f" `draftsman people link {code}`. The code works once; do not share it."
    )


def _unclear(desk: BotContext, said: str, why: str) -> Reply:
    if why:
        return Reply(escape_truncated(why))
    first = escape_truncated(said.split(None, 1)[0], 60) if said else ""
    verbs = ", ".join((*command_parser.REQUESTS, *command_parser.VERBS))
    return Reply(f"Unknown command: {first}. Commands: {verbs}.")
