"""The command `oncall`: the people on duty now and next."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from draftsman.errors import DraftsmanError, NotFound
from draftsman.formats import times
from draftsman_tui.cli.app import App, command
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import line, styled

if TYPE_CHECKING:
    from draftsman.attention.oncall import Duty
    from draftsman.attention.service.oncall import OnCall


@command(
    "oncall",
    section="Questions",
    examples=("draftsman oncall", "draftsman oncall backend --json"),
)
@click.argument("schedule", type=params.TEXT, required=False)
async def oncall(app: App, schedule: str | None) -> None:
    """Show the people on duty now and next.

    Shows the times of the handovers in the time zone of the schedule, and until when a person on
    duty is away: outside of their hours, only critical questions reach them. SCHEDULE is a table
    of [oncall]; without it, all are shown.
    """
    async with app.runtime(read_only=True) as rt:
        schedules = rt.oncall
        if schedule is not None and schedule not in schedules.names:
            known = ", ".join(schedules.names) or "none: add [oncall.default]"
            raise NotFound(f"unknown on-call schedule {schedule!r}; schedules: {known}")
        now = await rt.checkpoints.now()
        names = schedules.names if schedule is None else [schedule]
        rows = [await _row(schedules, name, now, alone=schedule is not None) for name in names]
    if app.json:
        app.out.document(rows)
    else:
        for row in rows:
            app.out.print(line(styled(row["schedule"], "bold"), f"  {_text(row)}"))
        if not rows:
            app.out.info("no on-call schedules; add [oncall.default] to draftsman.toml")
    if any("error" in row for row in rows):
        raise click.exceptions.Exit(1)


async def _row(schedules: OnCall, name: str, now: datetime, *, alone: bool) -> dict[str, Any]:
    """Return the duties of a schedule; with others, also the error of one that cannot be read."""
    row = {"schedule": name, "timezone": schedules.zone(name)}
    try:
        duties, later = await schedules.duties(name, now)
    except DraftsmanError as error:
        if alone:
            raise
        return row | {"on_duty": [], "next": None, "error": str(error)}

    def shown(duty: Duty) -> dict[str, Any]:
        away = schedules.away_until(duty.person, now)
        times_of = {"person": duty.person, "start": duty.start, "end": duty.end}
        return times_of | {"away_until": away}

    return row | {"on_duty": [shown(duty) for duty in duties], "next": later}


def _text(row: dict[str, Any]) -> str:
    zone = row["timezone"]
    if "error" in row:
        return f"cannot be read: {row['error']}"
    holders = []
    for duty in row["on_duty"]:
        away = duty["away_until"]
        until = f"{duty['person']} until {times.in_zone(duty['end'], zone)}"
        holders.append(until + (f" (away until {times.in_zone(away, zone)})" if away else ""))
    later = row["next"]
    then = f"; next {later.person} from {times.in_zone(later.start, zone)}" if later else ""
    return f"{', '.join(holders) or 'no person is on duty'}{then} ({zone})"
