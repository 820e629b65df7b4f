"""Blocks of schedules: a proposal to confirm, and the list. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final

from draftsman.errors import UsageError
from draftsman.schedules.schedule import Schedule, ScheduleSpec
from draftsman.schedules.timing import find_zone
from draftsman_bots.json_fields import mapping, string
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.blocks import Block, actions, bold, button, section
from draftsman_bots.slack.deliveries.mrkdwn import escape_truncated
from draftsman_bots.text import utf16_length

MAX_VALUE: Final = 2000
"""Characters of the value of a button."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A schedule to confirm: `text` is a request, or `template NAME …`."""

    name: str
    rule: str
    zone: str
    text: str
    mode: str = ""
    """The mode of the request; "" for a template."""
    options: dict[str, str] = field(default_factory=dict)

    def value(self) -> str:
        """Return the value of the button; raises UsageError if it is too long."""
        value = json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))
        if (size := utf16_length(value)) > MAX_VALUE:
            raise UsageError(
                f"the schedule has {size} characters; from Slack at most {MAX_VALUE}: use a"
                " template, or in a terminal: draftsman schedules add"
            )
        return value


def parse_proposal(value: str) -> Proposal | None:
    """Parse the value of a button; None if it is invalid."""
    try:
        data = mapping(json.loads(value))
    except (ValueError, RecursionError):
        return None
    options = mapping(data.get("options"))
    name, rule, zone = (string(data, key) for key in ("name", "rule", "zone"))
    if not (name and rule and zone):
        return None
    return Proposal(
        name,
        rule,
        zone,
        string(data, "text"),
        string(data, "mode"),
        {key: string(options, key) for key in options},
    )


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
    following = ", ".join(zone_time(at, proposal.zone) for at in times)
    lines = [
        f"Add the schedule {bold(proposal.name)} as {escape_truncated(author, 100)}?",
        f"*Rule:* {escape_truncated(phrase, 200)} (`{escape_truncated(proposal.rule, 100)}`)",
        f"*Time zone:* {escape_truncated(proposal.zone, 100)}{escape_truncated(source, 150)}",
        f"*Next:* {escape_truncated(following, 200)}",
        f"*Submits:* {_target(spec)}",
    ]
    return [
        section("\n".join(lines)),
        actions([button("Add schedule", ids.ADD_SCHEDULE, proposal.value(), "primary")]),
    ]


def listed_schedule(schedule: Schedule, *, controlled: bool) -> list[Block]:
    """Return a schedule, with buttons for a person who may change it."""
    following = "never"
    if schedule.paused_at is not None:
        reason = f": {schedule.pause_reason}" if schedule.pause_reason else ""
        following = f"paused by {schedule.paused_by}{reason}"
    elif schedule.due_at is not None:
        following = f"next {zone_time(schedule.due_at, schedule.timezone)}"
    rule = f"`{escape_truncated(schedule.rule, 100)}` {schedule.timezone}"
    lines = [
        f"{bold(schedule.name)} {rule} · {escape_truncated(following, 200)}",
        f"{_target(schedule.spec(), 200)} · by {escape_truncated(schedule.created_by, 100)}",
    ]
    text = section("\n".join(lines))
    if not controlled:
        return [text]
    value = ids.schedule_value(schedule.id)
    toggle = button("Pause", f"{ids.PAUSE_SCHEDULE}:{schedule.id}", value)
    if schedule.paused_at is not None:
        toggle = button("Resume", f"{ids.RESUME_SCHEDULE}:{schedule.id}", value)
    confirm = f"Remove schedule {schedule.name} and its history?"
    remove = button("Remove", f"{ids.REMOVE_SCHEDULE}:{schedule.id}", value, "danger", confirm)
    return [text, actions([toggle, remove])]


def zone_time(at: datetime, zone: str) -> str:
    """Return a time in the zone of its schedule, with the offset."""
    return at.astimezone(find_zone(zone)).strftime("%a %Y-%m-%d %H:%M %z")


def _target(spec: ScheduleSpec, limit: int = 1000) -> str:
    """Return the request that a schedule submits."""
    if spec.template is not None:
        params = " ".join(f"{name}={_shown(value)}" for name, value in (spec.params or {}).items())
        return escape_truncated(f"template {spec.template} {params}".strip(), limit)
    request = spec.request or {}
    parts = [f"{name} {request[name]}" for name in ("repo", "ref", "agent") if request.get(name)]
    note = ", ".join([str(request.get("mode") or request.get("type", "")), *parts])
    text = " ".join(str(request.get("text") or request.get("title") or "").split())
    return f"{escape_truncated(text, limit)} ({escape_truncated(note, 200)})".strip()


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
