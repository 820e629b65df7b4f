"""The command `oncall`: the people on duty now and next."""

from __future__ import annotations

import click

from draftsman.errors import NotFound
from draftsman_tui.cli.app import App, command
from draftsman_tui.common import params, times
from draftsman_tui.common.output import line, styled


@command("oncall", examples=("draftsman oncall", "draftsman oncall backend --json"))
@click.argument("schedule", type=params.TEXT, required=False)
async def oncall(app: App, schedule: str | None) -> None:
    """Show the people on duty now and next.

    Shows the times of the handovers. SCHEDULE is a table of [oncall]; without it, all are shown.
    """
    from draftsman.configured import oncall as configured_oncall

    async with app.runtime(read_only=True) as rt:
        schedules = configured_oncall(rt.settings, rt.policy)
        if schedule is not None and schedule not in schedules.names:
            known = ", ".join(schedules.names) or "none: add [oncall.default]"
            raise NotFound(f"unknown on-call schedule {schedule!r}; schedules: {known}")
        now = await rt.checkpoints.now()
        names = schedules.names if schedule is None else [schedule]
        found = [(name, *await schedules.duties(name, now)) for name in names]
    if app.json:
        app.out.document(
            [{"schedule": name, "on_duty": duties, "next": later} for name, duties, later in found]
        )
        return
    for name, duties, later in found:
        holders = [f"{duty.person} until {times.clock(duty.end)}" for duty in duties]
        then = f"; next {later.person} from {times.clock(later.start)}" if later else ""
        text = ", ".join(holders) or "no person is on duty"
        app.out.print(line(styled(name, "bold"), f"  {text}{then}"))
    if not found:
        app.out.info("no on-call schedules; add [oncall.default] to draftsman.toml")
