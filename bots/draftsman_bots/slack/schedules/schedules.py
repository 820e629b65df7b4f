"""Schedules from Slack: a proposal, which its author confirms, and the list."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any, Final

from slack_sdk.errors import SlackApiError

from draftsman.errors import Conflict, NotFound, NotPermitted, UsageError
from draftsman.people.policy import Verb
from draftsman.schedules.schedule import ScheduleSpec
from draftsman.schedules.timing import find_zone
from draftsman_bots.slack import ids
from draftsman_bots.slack.commands.command_parser import (
    InvalidText,
    JobRequest,
    assignments,
    parse_request,
)
from draftsman_bots.slack.deliveries.blocks import Block, context
from draftsman_bots.slack.deliveries.mrkdwn import escape_truncated
from draftsman_bots.slack.ephemeral import Reply, error_reply
from draftsman_bots.slack.identity import NETWORK, error_code
from draftsman_bots.slack.people.access import authorize_person
from draftsman_bots.slack.requests.job_requests import job_target, request_fields
from draftsman_bots.slack.schedules.schedule_blocks import (
    Proposal,
    listed_schedule,
    parse_proposal,
    proposal_blocks,
    zone_time,
)

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman.schedules.schedule import Schedule
    from draftsman_bots.slack.commands.command_parser import ScheduleRequest
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import BlockAction

MAX_LISTED: Final = 8
"""Schedules that a list shows: a message is limited to about 11,000 characters."""
MAX_NAME: Final = 40
SHOWN_TIMES: Final = 3
ZONE_TIMEOUT: Final = 1.0
"""Seconds for the lookup of a user's time zone, which Slack's own request waits for."""
_TEMPLATE: Final = re.compile(r"template\s+(\S.*)", re.DOTALL | re.IGNORECASE)


async def propose(
    ctx: BotContext, actor: Actor, channel: str, user: str, request: ScheduleRequest
) -> Reply:
    """Return the schedule that a text describes, to be confirmed; raises DraftsmanError."""
    ctx.rt.policy.check(actor, Verb.SUBMIT)
    phrase = request.phrase
    zone, source = (phrase.zone, "") if phrase.zone else await _zone(ctx, user)
    rule = phrase.rule(zone, await ctx.rt.schedules.now())
    known = {schedule.name for schedule in await ctx.rt.schedules.all()}
    if (template := _TEMPLATE.fullmatch(request.text)) is not None:
        name = _free_name(template[1].split()[0], known)
        proposal = Proposal(name, rule, zone, template[1])
    else:
        if not request.text:
            raise UsageError(f"the text is missing: {phrase.text} TEXT")
        parsed = parse_request(request.text)
        if isinstance(parsed, InvalidText):
            raise UsageError(parsed.reason)
        name = _free_name(parsed.text, known)
        proposal = Proposal(name, rule, zone, parsed.text, parsed.mode, parsed.options)
    spec = await ctx.rt.schedules.checked(await _spec(ctx, proposal, channel, user), chats=False)
    times = await ctx.rt.schedules.preview(spec, SHOWN_TIMES)
    blocks = proposal_blocks(
        proposal,
        spec,
        times,
        author=actor.person or actor.name,
        phrase=phrase.text,
        zone_source=source,
    )
    return Reply(f"Add the schedule {escape_truncated(name)}? It is not saved yet.", blocks)


async def add(ctx: BotContext, action: BlockAction) -> Reply:
    """Add the schedule of a proposal in the name of the person who confirms it.

    A repeated confirmation changes nothing. Raises DraftsmanError.
    """
    proposal = parse_proposal(action.value)
    if proposal is None:
        raise NotFound("schedule not found")
    actor = await authorize_person(ctx, action.user, action.channel)
    try:
        spec = await _spec(ctx, proposal, action.channel, action.user.id)
        schedule = await ctx.rt.schedules.add(spec, actor, chats=False)
    except NotFound as error:  # its template or repository, not the button
        return error_reply(error)
    except Conflict:
        schedule = await ctx.rt.schedules.get(spec.name)
        if (schedule.created_by, schedule.spec()) != (
            ctx.rt.policy.resolve(actor).voter,
            await ctx.rt.schedules.checked(spec, chats=False),
        ):
            raise
    following = zone_time(schedule.due_at, schedule.timezone) if schedule.due_at else "never"
    command = f"`{ctx.settings.command} schedules`"
    return Reply(
        f"Schedule {escape_truncated(schedule.name)} is added; next: {following}. To pause or"
        f" remove it: {command}"
    )


async def change(ctx: BotContext, action: BlockAction, kind: str) -> Reply:
    """Pause, resume or remove the schedule of a button; raises DraftsmanError."""
    actor = await authorize_person(ctx, action.user, action.channel)
    number = ids.parse_schedule(action.value)
    schedules = ctx.rt.schedules
    name = next((item.name for item in await schedules.all() if item.id == number), None)
    if name is None:
        raise NotFound("schedule not found")
    shown = escape_truncated(name)
    if kind == ids.REMOVE_SCHEDULE:
        await schedules.remove(name, actor)
        return Reply(f"Schedule {shown} is removed.")
    if kind == ids.PAUSE_SCHEDULE:
        await schedules.pause(name, actor)
        return Reply(f"Schedule {shown} is paused.")
    resumed = await schedules.resume(name, actor)
    following = zone_time(resumed.due_at, resumed.timezone) if resumed.due_at else "never"
    return Reply(f"Schedule {shown} is resumed; next: {following}")


async def list_schedules(ctx: BotContext, actor: Actor, text: str) -> Reply:
    """Return the schedules whose name contains the text."""
    schedules = [
        schedule
        for schedule in await ctx.rt.schedules.all()
        if text.casefold() in schedule.name.casefold()
    ]
    if not schedules and text:
        return Reply(f"No schedule contains {escape_truncated(text, 60)}.")
    if not schedules:
        example = f"{ctx.settings.command} every weekday at 9 TEXT"
        return Reply(f"No schedules yet. Add a schedule: `{example}`")
    blocks: list[Block] = []
    for schedule in schedules[:MAX_LISTED]:
        blocks += listed_schedule(schedule, controlled=_may_change(ctx, actor, schedule))
    names = ", ".join(schedule.name for schedule in schedules[:MAX_LISTED])
    if (more := len(schedules) - MAX_LISTED) > 0:
        search = f"{more} more; to search: `{ctx.settings.command} schedules TEXT`"
        blocks.append(context(search))
        names = f"{names}; {search}"
    return Reply(f"Schedules: {names}", blocks)


def _may_change(ctx: BotContext, actor: Actor, schedule: Schedule) -> bool:
    try:
        ctx.rt.policy.check(actor, Verb.SCHEDULES, invoker=schedule.created_by)
    except NotPermitted:
        return False
    return True


async def _spec(ctx: BotContext, proposal: Proposal, channel: str, user: str) -> ScheduleSpec:
    """Return the definition of a proposal, as if it were typed; raises DraftsmanError."""
    if not proposal.mode:
        name, given = assignments(proposal.text)
        template = await ctx.rt.templates.get(name)
        params = template.definition.parsed(given) if template.definition is not None else given
        return ScheduleSpec(
            proposal.name, proposal.rule, proposal.zone, template=name, params=params or None
        )
    request = JobRequest(proposal.text, proposal.mode, proposal.options)
    fields = await request_fields(ctx, request, job_target(channel, "", user))
    stored: dict[str, Any] = json.loads(json.dumps(fields))
    return ScheduleSpec(proposal.name, proposal.rule, proposal.zone, request=stored)


async def _zone(ctx: BotContext, user: str) -> tuple[str, str]:
    """Return the time zone of a user's Slack profile, else of the configuration, and its source."""
    default, source = ctx.rt.settings.questions.timezone, "the default of the configuration"
    try:
        async with asyncio.timeout(ZONE_TIMEOUT):
            response: Any = (await ctx.client.users_info(user=user)).data
    except SlackApiError as error:
        if error_code(error) == "missing_scope":
            source += "; your profile's needs the scope users:read"
        return default, source
    except NETWORK:
        return default, source
    zone = (response.get("user") or {}).get("tz")
    try:
        find_zone(zone if isinstance(zone, str) else "")
    except UsageError:
        return default, source
    return str(zone), "of your Slack profile"


def _free_name(text: str, known: set[str]) -> str:
    """Return a name made from the first words of a text, which no schedule has."""
    words = re.findall(r"[a-z0-9]+", text.casefold())
    name = "-".join(words)[:MAX_NAME].strip("-") or "schedule"
    numbered = (f"{name}-{number}" for number in range(2, len(known) + 3))
    return next(option for option in (name, *numbered) if option not in known)
