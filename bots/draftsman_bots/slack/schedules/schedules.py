"""Schedules from Slack: a proposal, which its author confirms, and the list."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter
from slack_sdk.errors import SlackApiError

from draftsman.actions import schedules as actions
from draftsman.actions.action import Call
from draftsman.errors import Conflict, NotFound, NotPermitted, UsageError
from draftsman.formats.times import in_zone
from draftsman.formats.truncation import utf16_length
from draftsman.people.policy import Verb
from draftsman.schedules.schedule import Schedule, ScheduleSpec, find_zone
from draftsman_bots.conversation.parser import parse_scheduled
from draftsman_bots.conversation.requests import (
    JobRequest,
    assignments,
)
from draftsman_bots.slack import ids
from draftsman_bots.slack.controls import schedule_button
from draftsman_bots.slack.deliveries.blocks import Block, bold, button, context, section
from draftsman_bots.slack.deliveries.blocks import actions as controls_row
from draftsman_bots.slack.deliveries.mrkdwn import escape_truncated, inline_code
from draftsman_bots.slack.ephemeral import Reply, error_reply
from draftsman_bots.slack.identity import NETWORK, error_code
from draftsman_bots.slack.payloads.payloads import Required
from draftsman_bots.slack.requests.job_requests import job_target, request_fields

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman_bots.conversation.requests import ScheduleRequest
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import BlockAction


# Blocks of schedules: a proposal to confirm, and the list.


MAX_VALUE: Final = 2000
"""Characters of the value of a button."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A schedule to confirm: `text` is a request, or `template NAME …`."""

    name: Required
    rule: Required
    zone: Required
    text: str = ""
    mode: str = ""
    """The mode of the request; "" for a template."""
    options: dict[str, str] = field(default_factory=dict)

    def button_value(self) -> str:
        """Return the value of the button; raises UsageError if it is too long."""
        value = json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))
        if (size := utf16_length(value)) > MAX_VALUE:
            raise UsageError(
                f"the schedule has {size} characters; from Slack at most {MAX_VALUE}: use a"
                " template, or in a terminal: draftsman schedules add"
            )
        return value


_PROPOSAL: Final = TypeAdapter(Proposal)


def proposal_blocks(
    proposal: Proposal,
    spec: ScheduleSpec,
    times: Sequence[datetime],
    *,
    author: str,
    phrase: str,
    zone_source: str,
) -> list[Block]:
    """Return the rule, zone, author, request and next times, with a button that adds it."""
    source = f" ({zone_source})" if zone_source else ""
    following = ", ".join(in_zone(at, proposal.zone) for at in times)
    lines = [
        f"Add the schedule {bold(proposal.name)} as {escape_truncated(author, 100)}?",
        f"*Rule:* {escape_truncated(phrase, 200)} ({inline_code(proposal.rule, 100)})",
        f"*Time zone:* {escape_truncated(proposal.zone, 100)}{escape_truncated(source, 150)}",
        f"*Next:* {escape_truncated(following, 200)}",
        f"*Submits:* {_target(spec)}",
    ]
    return [
        section("\n".join(lines)),
        controls_row(
            [button("Add schedule", ids.ADD_SCHEDULE, proposal.button_value(), style="primary")]
        ),
    ]


def listed_schedule(schedule: Schedule, *, controlled: bool) -> list[Block]:
    """Return a schedule, with buttons for a person who may change it."""
    following = "never"
    if schedule.paused_at is not None:
        reason = f": {schedule.pause_reason}" if schedule.pause_reason else ""
        following = f"paused by {schedule.paused_by}{reason}"
    elif schedule.due_at is not None:
        following = f"next {in_zone(schedule.due_at, schedule.timezone)}"
    rule = f"{inline_code(schedule.rule, 100)} {schedule.timezone}"
    lines = [
        f"{bold(schedule.name)} {rule} · {escape_truncated(following, 200)}",
        f"{_target(schedule.spec(), 200)} · by {escape_truncated(schedule.created_by, 100)}",
    ]
    text = section("\n".join(lines))
    if not controlled:
        return [text]
    toggle = actions.pause if schedule.paused_at is None else actions.resume
    buttons = [schedule_button(action, schedule) for action in (toggle, actions.remove)]
    return [text, controls_row(buttons)]


def _target(spec: ScheduleSpec, limit: int = 1000) -> str:
    """Return the request that a schedule submits."""
    if spec.template is not None:
        params = " ".join(
            f"{name}={_value_text(value)}" for name, value in (spec.params or {}).items()
        )
        return escape_truncated(f"template {spec.template} {params}".strip(), limit)
    request = spec.request or {}
    options = [f"{name} {request[name]}" for name in ("repo", "ref", "agent") if request.get(name)]
    note = ", ".join([str(request.get("mode") or request.get("type", "")), *options])
    text = " ".join(str(request.get("text") or request.get("title") or "").split())
    return f"{escape_truncated(text, limit)} ({escape_truncated(note, 200)})".strip()


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


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
    used_names = {schedule.name for schedule in await ctx.rt.schedules.all()}
    if (template := _TEMPLATE.fullmatch(request.text)) is not None:
        name = _free_name(template[1].split()[0], used_names)
        proposal = Proposal(name, rule, zone, template[1])
    else:
        if not request.text:
            raise UsageError(f"the text is missing: {phrase.text} TEXT")
        parsed = parse_scheduled(request.text)
        name = _free_name(parsed.text, used_names)
        proposal = Proposal(
            name=name,
            rule=rule,
            zone=zone,
            text=parsed.text,
            mode=parsed.mode,
            options=parsed.options,
        )
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


async def add(ctx: BotContext, actor: Actor, click: BlockAction) -> Reply:
    """Add the schedule of a proposal in the name of the person who confirms it.

    A repeated confirmation changes nothing. Raises DraftsmanError.
    """
    try:
        proposal = _PROPOSAL.validate_json(click.value)
    except ValueError:
        raise NotFound("schedule not found") from None
    try:
        spec = await _spec(ctx, proposal, click.channel, click.user_id)
        schedule = (await actions.add(Call(ctx.rt, actor), spec, chats=False)).value
    except NotFound as error:  # its template or repository, not the button
        return error_reply(error)
    except Conflict:
        schedule = await ctx.rt.schedules.get(spec.name)
        if (schedule.created_by, schedule.spec()) != (
            ctx.rt.policy.resolve(actor).voter,
            await ctx.rt.schedules.checked(spec, chats=False),
        ):
            raise
    following = actions.following(schedule)
    command = f"`{ctx.settings.command} schedules`"
    return Reply(
        f"Schedule {escape_truncated(schedule.name)} is added; next: {following}. To pause or"
        f" remove it: {command}"
    )


async def list_schedules(ctx: BotContext, actor: Actor, text: str) -> Reply:
    """Return the schedules whose name contains the text."""
    schedules = [
        schedule
        for schedule in await ctx.rt.seen_by(actor).schedules.all()
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
    if (hidden := len(schedules) - MAX_LISTED) > 0:
        search = f"{hidden} more; to search: `{ctx.settings.command} schedules TEXT`"
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
        name, values = assignments(proposal.text)
        inputs = await ctx.rt.templates.inputs(await ctx.rt.templates.get(name))
        params = inputs.parsed(values)
        return ScheduleSpec(
            proposal.name, proposal.rule, proposal.zone, template=name, params=params or None
        )
    request = JobRequest(proposal.text, proposal.mode, proposal.options)
    fields = await request_fields(ctx, request, job_target(channel, "", user))
    stored: dict[str, Any] = json.loads(json.dumps(fields))
    return ScheduleSpec(proposal.name, proposal.rule, proposal.zone, request=stored)


async def _zone(ctx: BotContext, user: str) -> tuple[str, str]:
    """Return the time zone of a user's Slack profile, else of the configuration, and its source."""
    default = ctx.rt.settings.questions.timezone
    source = "the default of the configuration"
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


def _free_name(text: str, used_names: set[str]) -> str:
    """Return a name made from the first words of a text, which no schedule has."""
    words = re.findall(r"[a-z0-9]+", text.casefold())
    name = "-".join(words)[:MAX_NAME].strip("-") or "schedule"
    numbered = (f"{name}-{number}" for number in range(2, len(used_names) + 3))
    return next(option for option in (name, *numbered) if option not in used_names)
