"""The `schedules apply` command: schedules from a file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import click

from draftsman.actions import schedules as actions
from draftsman.durations import parse_duration
from draftsman.errors import Refused, UsageError
from draftsman.formats.amounts import counted
from draftsman.formats.json_data import as_data
from draftsman.schedules.phrases import whole_phrase
from draftsman.schedules.schedule import Misfire, Overlap, ScheduleChange, ScheduleSpec
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.perform import act
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import styled

RULES: Final = ("cron", "every", "at", "when")
KEYS: Final = (
    *RULES,
    "zone",
    "template",
    "params",
    "request",
    "misfire",
    "misfire_limit",
    "jitter",
    "overlap",
)
EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""The time from which a date of `when` is read: it may be past when a file is applied again."""
SIGNS: Final = {"add": ("+", "green"), "change": ("~", "yellow"), "remove": ("-", "red")}


@command(
    "apply",
    examples=(
        "draftsman schedules apply schedules.toml",
        "draftsman schedules apply schedules.toml --check",
    ),
    does=(actions.apply,),
)
@click.argument("file", type=params.TEXT)
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if there are changes.")
async def apply(app: App, file: str, check: bool, yes: bool) -> None:
    """Apply the schedules of a TOML file.

    The file has a name, and a table for each schedule. Schedules that were applied under this name
    and are no longer in the file are removed; all others are left alone. Applying a file twice
    changes nothing.
    """
    origin, specs = schedule_file(file)
    async with app.runtime(read_only=check) as rt:
        changes = await rt.schedules.plan(specs, origin)
        if app.json and (check or not changes):
            app.out.document(actions.plan_data(changes))
        elif not app.json:
            _print_plan(app, changes)
        if check and changes:
            raise Refused(f"{counted(len(changes), 'change')} to apply")
        if changes:
            await act(app, rt, actions.apply, origin, changes=changes, yes=yes)


def schedule_file(path: str) -> tuple[str, list[ScheduleSpec]]:
    """Read the name and the schedules of a file, or of stdin for `-`; raises UsageError."""
    try:
        data = tomllib.loads(params.read_text(Path(path)))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: invalid TOML: {error}") from None
    origin = data.pop("name", None)
    tables = data.pop("schedules", {})
    if not isinstance(origin, str) or not 0 < len(origin) <= 200:
        raise UsageError(f'{path}: name is required, such as name = "acme/pay"')
    if data:
        raise UsageError(f"{path}: unknown key {next(iter(data))!r}; allowed: name, schedules")
    if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
        raise UsageError(f"{path}: schedules must be tables, such as [schedules.nightly]")
    specs = []
    for name, table in tables.items():
        try:
            specs.append(_spec(name, table))
        except UsageError as error:
            raise UsageError(f"{path}: schedule {name[:60]}: {error}") from None
    return origin, specs


def _spec(name: str, table: dict[str, Any]) -> ScheduleSpec:
    if unknown := [key for key in table if key not in KEYS]:
        raise UsageError(f"unknown key {unknown[0]!r}; allowed: {', '.join(KEYS)}")
    rules = [key for key in RULES if key in table]
    if len(rules) != 1:
        raise UsageError("needs one of cron, every, at and when")
    rule, zone = _rule(rules[0], table)
    limit = table.get("misfire_limit", 10)
    if type(limit) is not int:
        raise UsageError("misfire_limit must be a whole number")
    for key in ("params", "request"):
        if not isinstance(table.get(key, {}), dict):
            raise UsageError(f"{key} must be a table")
    jitter = table.get("jitter", 0)
    return ScheduleSpec(
        name,
        rule,
        zone,
        None if "template" not in table else str(table["template"]),
        table.get("params"),
        table.get("request"),
        _choice(Misfire, table, "misfire", Misfire.LAST),
        limit,
        round(parse_duration(str(jitter))) if jitter else 0,
        _choice(Overlap, table, "overlap", Overlap.SKIP),
    )


def _rule(kind: str, table: dict[str, Any]) -> tuple[str, str]:
    """Return the rule and the zone of a schedule."""
    text = str(table[kind])
    zone = str(table["zone"]) if "zone" in table else None
    if kind == "when":
        phrase = whole_phrase(text)
        if phrase.repeats is None and not isinstance(phrase.day, date):
            raise UsageError(
                f"when {text[:60]!r} depends on the time of apply; use at, or a date such as"
                " 'on 2030-12-31 at 18:00'"
            )
        if phrase.zone is not None and zone not in (None, phrase.zone):
            raise UsageError(f"when names the zone {phrase.zone}, and zone {zone}; use one")
        zone = phrase.zone or zone or "UTC"
        return phrase.rule(zone, EARLIEST), zone
    return text if kind == "cron" else f"@{kind} {text}", zone or "UTC"


def _choice(kind: Any, table: dict[str, Any], key: str, default: Any) -> Any:
    try:
        return kind(table.get(key, default))
    except ValueError:
        raise UsageError(f"{key} must be {', '.join(kind)}") from None


def _print_plan(app: App, changes: list[ScheduleChange]) -> None:
    """Print each change, with the old and new values of a changed schedule."""
    if not changes:
        app.out.info("no changes")
    for change in changes:
        sign, style = SIGNS[change.action]
        app.out.print(styled(f"{sign} {change.name}", style))
        if change.spec is not None:
            app.out.print(*_differences(change))


def _differences(change: ScheduleChange) -> Iterator[str]:
    old = as_data(change.current) if change.current else {}
    for key, value in as_data(change.spec).items():
        if key != "name" and value != old.get(key) and value not in (None, {}):
            before = f"{json.dumps(old[key])} -> " if old.get(key) is not None else ""
            yield f"    {key}: {before}{json.dumps(value, ensure_ascii=False)}"
        elif value is None and old.get(key) is not None:
            yield f"    {key}: {json.dumps(old[key])} -> none"
