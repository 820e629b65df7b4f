"""The `schedules` command group: jobs that are submitted at their times."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from draftsman.actions import schedules as actions
from draftsman.durations import format_duration, parse_instant
from draftsman.entities.schedules import FIRES, SCHEDULES
from draftsman.errors import UsageError
from draftsman.formats import times
from draftsman.formats.invisible import one_line
from draftsman.formats.json_data import as_data
from draftsman.ids import job_name
from draftsman.schedules.schedule import MEANINGS, Misfire, Overlap, ScheduleSpec, find_zone
from draftsman_tui.cli.app import App, ListGroup, command_group
from draftsman_tui.cli.lists import print_list, rows_to_read
from draftsman_tui.cli.perform import act, perform
from draftsman_tui.cli.requests.request_options import request_fields, request_options
from draftsman_tui.cli.requests.submit import print_next_step
from draftsman_tui.cli.schedules.schedule_apply import apply
from draftsman_tui.common.requests import options_named
from draftsman_tui.terminal import params
from draftsman_tui.terminal.colors import STYLES
from draftsman_tui.terminal.output import line, styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.schedules.schedule import Schedule


@command_group(
    "schedules",
    section="Recurring",
    cls=ListGroup,
    examples=(
        "draftsman schedules",
        "draftsman schedules add nightly --cron '0 2 * * *' --template tidy",
        "draftsman schedules next nightly --count 3",
        "draftsman schedules history nightly",
    ),
)
def schedules() -> None:
    """Manage schedules, which submit jobs at set times.

    The leader of the workers fires them. Each occurrence has a single outcome, and at most one job.
    """


schedules.add_command(apply)


@schedules.subcommand(
    "add",
    examples=(
        "draftsman schedules add nightly --cron '0 2 * * *' --zone Europe/Berlin --template tidy",
        "draftsman schedules add tidy --when 'every weekday at 9' --agent coder --repo . 'Tidy up'",
        "draftsman schedules add poll --every 90m --type http_request --payload @poll.json",
        "draftsman schedules add launch --at 2030-12-31T18:00 --agent coder --repo . 'Release'",
    ),
    does=(actions.add,),
)
@click.argument("name", type=params.TEXT)
@click.argument("text", nargs=-1, type=params.TEXT)
@click.option("--cron", type=params.TEXT, help="Five fields, or @daily, @weekly, …")
@click.option("--every", type=params.TEXT, help="Interval, e.g. 90m or 1h30m.")
@click.option("--at", type=params.TEXT, help="A single time, e.g. 2030-12-31T18:00.")
@click.option("--when", type=params.TEXT, help="In English, e.g. 'every weekday at 9'.")
@click.option("--zone", type=params.TEXT, help="IANA time zone; default: UTC.")
@click.option("--template", type=params.TEXT, help="Template, or TEMPLATE@VERSION.")
@click.option("--param", type=params.TEXT_PAIR, multiple=True, help="Parameter of the template.")
@click.option(
    "--misfire",
    type=click.Choice(("skip", "last", "all")),
    default="last",
    show_default=True,
    help="Missed occurrences that still fire.",
)
@click.option(
    "--misfire-limit",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=10,
    show_default=True,
    help="With all: maximum.",
)
@click.option("--jitter", type=params.DURATION, default=0.0, help="Maximum random delay, e.g. 5m.")
@click.option(
    "--overlap",
    type=click.Choice(("skip", "queue", "cancel-running")),
    default="skip",
    show_default=True,
    help="What to do while the previous job is unfinished.",
)
@click.option("--replace", is_flag=True, help="Replace a schedule of this name.")
@request_options
async def add(app: App, name: str, text: tuple[str, ...], replace: bool, **options: Any) -> None:
    """Add a schedule.

    It submits a template, or the request that TEXT and the options describe, in your name.
    """
    rule = _rule(options)
    phrase = options.pop("when")
    template = options.pop("template")
    parameters = dict(options.pop("param"))
    zone = options.pop("zone")
    firing = {
        "misfire": Misfire(options.pop("misfire")),
        "misfire_limit": options.pop("misfire_limit"),
        "jitter": round(options.pop("jitter")),
        "overlap": Overlap(options.pop("overlap")),
    }
    fields = request_fields(text, options)
    if template and fields:
        raise UsageError(f"--template cannot be combined with {', '.join(sorted(fields))}")
    if parameters and not template:
        raise UsageError("--param requires --template")
    async with app.runtime() as rt:
        if phrase is not None:
            rule, zone = _phrase_rule(phrase, zone, await rt.schedules.now())
        if template:
            inputs = await rt.templates.inputs(await rt.templates.get(template))
            parameters = inputs.parsed(parameters)
        spec = ScheduleSpec(
            name=name,
            rule=rule,
            timezone=zone or "UTC",
            template=template,
            params=parameters or None,
            request=None if template else fields,
            **firing,
        )
        with options_named():
            await act(app, rt, actions.add, spec, replaces=replace)


@schedules.subcommand(
    "list",
    examples=("draftsman schedules list", "draftsman schedules list --json"),
    lists=SCHEDULES,
)
async def list_schedules(app: App) -> None:
    """List the schedules."""
    async with app.runtime(read_only=True) as rt:
        saved_schedules = await rt.schedules.all()
        now = await rt.schedules.now()
    print_list(app, SCHEDULES, saved_schedules, now=now)


@schedules.subcommand("show", examples=("draftsman schedules show nightly",))
@click.argument("name", type=params.TEXT)
async def show(app: App, name: str) -> None:
    """Show a schedule, its next occurrences and its newest outcomes."""
    async with app.runtime(read_only=True) as rt:
        schedule = await rt.schedules.get(name)
        upcoming = await rt.schedules.upcoming(name, 3)
        history = await rt.schedules.history(name, 5)
        problem = await rt.schedules.problem(schedule)
        if problem is None and not await rt.request_checks.live_types():
            problem = "no worker is running"
    if app.json:
        data = {"next": upcoming, "history": history, "problem": problem}
        app.out.document(as_data(schedule) | data)
        return
    app.out.print(line(styled(schedule.name, "bold"), f"  {schedule.rule} {schedule.timezone}"))
    pairs = {
        "submits": schedule.target,
        "params": " ".join(f"{key}={value}" for key, value in schedule.params.items()),
        "by": f"{schedule.created_by}, {times.ago(schedule.created_at)}",
        "file": schedule.origin or "",
        "misfire": f"{schedule.misfire}, at most {schedule.misfire_limit}",
        "overlap": str(schedule.overlap),
        "jitter": f"up to {format_duration(schedule.jitter)}" if schedule.jitter else "",
        "paused": _pause_text(schedule),
        "next": ", ".join(times.in_zone(at, schedule.timezone) for at in upcoming) or "never",
    }
    app.out.print(
        *(line(styled(f"  {name:<9}", "dim"), text) for name, text in pairs.items() if text)
    )
    if problem:
        app.out.print(line(styled("  problem  ", "dim"), styled(one_line(problem), "yellow")))
    for fire in history:
        app.out.print(line("  ", *_fire_parts(fire, schedule)))


@schedules.subcommand("next", examples=("draftsman schedules next nightly --count 10",))
@click.argument("name", type=params.TEXT)
@click.option("--count", type=click.IntRange(1, 1000), default=10, show_default=True)
async def next_times(app: App, name: str, count: int) -> None:
    """List the next occurrences of a schedule."""
    async with app.runtime(read_only=True) as rt:
        schedule = await rt.schedules.get(name)
        upcoming = await rt.schedules.upcoming(name, count)
    if app.json:
        app.out.document([{"due_at": at, "fire_at": schedule.fire_time(at)} for at in upcoming])
        return
    if not upcoming:
        app.out.info(f"{name} has no further occurrence")
    app.out.print(*(_time(schedule, at) for at in upcoming))
    if schedule.paused_at is not None:
        resume = f"draftsman schedules resume {name}"
        app.out.info(f"{name} is {_pause_text(schedule)}; to resume: {resume}")


@schedules.subcommand(
    "history",
    examples=("draftsman schedules history nightly", "draftsman schedules history --limit 20"),
    lists=FIRES,
)
@click.argument("name", type=params.TEXT, required=False)
@params.limit_option("occurrences")
async def history(app: App, name: str | None, limit: int) -> None:
    """List the occurrences of a schedule, or of all, newest first.

    An occurrence fired, was skipped or refused, or waits for the previous job. The newest thousand
    of a schedule are kept.
    """
    async with app.runtime(read_only=True) as rt:
        fires = await rt.schedules.history(name, rows_to_read(app, limit))
    print_list(app, FIRES, fires, limit=limit)


@schedules.subcommand(
    "pause",
    examples=("draftsman schedules pause nightly --reason 'release freeze'",),
    does=(actions.pause,),
)
@click.argument("name", type=params.TEXT)
@click.option("--reason", type=params.TEXT, help="Shown to others.")
async def pause(app: App, name: str, reason: str | None) -> None:
    """Pause a schedule: it does not fire until it is resumed."""
    await perform(app, actions.pause, name, reason=reason or "")


@schedules.subcommand(
    "resume", examples=("draftsman schedules resume nightly",), does=(actions.resume,)
)
@click.argument("name", type=params.TEXT)
async def resume(app: App, name: str) -> None:
    """Resume a paused schedule, from its next occurrence on."""
    await perform(app, actions.resume, name)


@schedules.subcommand("run", examples=("draftsman schedules run nightly",), does=(actions.run,))
@click.argument("name", type=params.TEXT)
async def run(app: App, name: str) -> None:
    """Submit the job of a schedule now, in your name."""
    async with app.runtime() as rt:
        with options_named():
            result = await act(app, rt, actions.run, name)
        await print_next_step(app, rt, result)


@schedules.subcommand(
    "remove", examples=("draftsman schedules remove nightly",), does=(actions.remove,)
)
@click.argument("name", type=params.TEXT)
async def remove(app: App, name: str, yes: bool) -> None:
    """Remove a schedule and its history; its jobs are kept."""
    await perform(app, actions.remove, name, yes=yes)


def _rule(options: dict[str, Any]) -> str:
    """Return the rule of --cron, --every or --at, "" for --when; raises UsageError."""
    cron, every, at = (options.pop(name) for name in ("cron", "every", "at"))
    if sum(value is not None for value in (cron, every, at, options["when"])) != 1:
        raise UsageError("a schedule needs exactly one of --cron, --every, --at and --when")
    if options["when"] is not None:
        return ""
    if at is not None:
        return f"@at {_instant(at, options['zone']).isoformat()}"
    return cron if every is None else f"@every {every}"


def _phrase_rule(text: str, zone: str | None, now: datetime) -> tuple[str, str | None]:
    """Return the rule of --when, and its zone; raises UsageError."""
    from draftsman.schedules.phrases import whole_phrase

    phrase = whole_phrase(text)
    if phrase.zone is not None and zone not in (None, phrase.zone):
        raise UsageError(f"--when names the zone {phrase.zone}, and --zone {zone}; use one")
    zone = phrase.zone or zone
    return phrase.rule(zone or "UTC", now), zone


def _instant(text: str, zone: str | None) -> datetime:
    """Parse a time; without an offset it is in the zone, or local without a zone."""
    at = parse_instant(text)
    if zone is None or datetime.fromisoformat(text.strip()).tzinfo is not None:
        return at
    return datetime.fromisoformat(text.strip()).replace(tzinfo=find_zone(zone))


def _time(schedule: Schedule, at: datetime) -> str:
    """Return an occurrence in the zone of its schedule, with the name of the zone."""
    return f"{times.in_zone(at, schedule.timezone)} {schedule.timezone}"


def _pause_text(schedule: Schedule) -> str:
    if schedule.paused_at is None:
        return ""
    reason = f": {schedule.pause_reason}" if schedule.pause_reason else ""
    return f"paused by {schedule.paused_by}, {times.ago(schedule.paused_at)}{reason}"


def _fire_parts(fire: Any, schedule: Schedule) -> tuple[Text | str, ...]:
    job = f" {job_name(fire.job)}" if fire.job else ""
    reason = f": {fire.reason}" if fire.reason else ""
    return (
        f"{times.in_zone(fire.due_at, schedule.timezone)}  ",
        styled(f"{fire.status}{job}{reason}", STYLES[MEANINGS[fire.status]]),
    )
