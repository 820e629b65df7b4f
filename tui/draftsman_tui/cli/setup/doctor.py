"""`doctor`: is everything there, and if not, what to do.

Each check is a small function that returns findings; one that fails never hides the next. `warn`
is what works but will surprise, `fail` is what does not work.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman import host
from draftsman.domain.ids import worker_name
from draftsman.domain.messages.target import NONE
from draftsman.errors import DraftsmanError, SchemaOutdated
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.process.serve import check_slack, check_trello
from draftsman_tui.cli.setup import doctor_checks
from draftsman_tui.cli.setup.doctor_checks import Finding
from draftsman_tui.common import times
from draftsman_tui.common.output import line, one_line, styled
from draftsman_tui.common.worker_health import health_of

if TYPE_CHECKING:
    from draftsman.runtime import Runtime

OLDEST: Final = 15
"""Major version of PostgreSQL that has all that the schema uses."""
LATE: Final = 300.0
"""Seconds after which a message that is due has nobody who delivers it."""
SKEW: Final = 2.0
"""Seconds that clocks may differ before times look wrong to people."""
STYLES: Final = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@dataclass(frozen=True, slots=True)
class BrokenInvariant:
    """Rows that break one invariant of the data."""

    invariant: str
    job: int
    how: str


@command("doctor", examples=("draftsman doctor", "draftsman doctor --invariants"))
@click.option("--invariants", is_flag=True, help="Check every invariant of the data instead.")
async def doctor(app: App, invariants: bool) -> None:
    """Check everything, and say what to do.

    Exits with 1 when a check fails, or with --invariants when a row breaks one.
    """
    if invariants:
        async with app.runtime(read_only=True) as rt:
            _report_invariants(app, await rt.read_model.invariants())
        return
    findings = []
    # closed even when the reader of our output left: the checks hold a connection
    async with contextlib.aclosing(_checks(app)) as checks:
        async for finding in checks:
            findings.append(finding)
            if not app.json:
                app.out.print(*_lines(finding))
    failed = [one for one in findings if one.status == "fail"]
    if app.json:
        app.out.document({"ok": not failed, "checks": findings})
    if failed:
        raise DraftsmanError(_count(len(failed), "check") + " failed")


async def _checks(app: App) -> AsyncGenerator[Finding, None]:
    settings = app.settings
    yield doctor_checks.configuration(app.config)
    try:
        async with app.runtime(read_only=True) as rt:
            for check in CHECKS:
                for finding in await check(rt):
                    yield finding
    except SchemaOutdated as error:
        yield Finding("migrations", "fail", str(error))
    except DraftsmanError as error:
        yield Finding("database", "fail", str(error), _where(app))
    if settings.slack is not None:
        for finding in await check_slack(settings.slack):
            yield finding
    yield doctor_checks.git()
    for look in LOOKS:
        for finding in look(settings):
            yield finding


async def _server(rt: Runtime) -> Sequence[Finding]:
    health, _ = await rt.read_model.health()
    kind = "embedded, yours alone" if rt.embedded else f"as {health.role}"
    text = f"PostgreSQL {health.version}, {kind}"
    if int(health.version.split(".")[0].split("beta")[0]) < OLDEST:
        return [Finding("database", "fail", text, f"use version {OLDEST} or later")]
    if health.fsync != "on" or health.synchronous_commit == "off":
        risk = f"fsync {health.fsync}, synchronous_commit {health.synchronous_commit}"
        then = "a power cut may lose acknowledged jobs: turn both on"
        return [Finding("database", "ok", text), Finding("durability", "warn", risk, then)]
    return [Finding("database", "ok", text), Finding("durability", "ok", "fsync on")]


async def _migrations(rt: Runtime) -> Sequence[Finding]:
    from draftsman import migrate

    found = await migrate.applied_migrations(rt.db.url)
    missing = [one.name for one in found if one.applied_at is None]
    if missing:
        return [
            Finding("migrations", "fail", f"missing: {', '.join(missing)}", "draftsman migrate")
        ]
    return [Finding("migrations", "ok", f"all {len(found)} applied")]


async def _clock(rt: Runtime) -> Sequence[Finding]:
    _, ahead = await rt.read_model.health()
    if abs(ahead) <= SKEW:
        return [Finding("clock", "ok", f"within {SKEW:.0f} s of the database's")]
    way = "ahead of" if ahead > 0 else "behind"
    text = f"{times.span(ahead)} {way} the database's, which decides"
    return [Finding("clock", "warn", text, "let both machines follow NTP")]


async def _rights(rt: Runtime) -> Sequence[Finding]:
    """Say by whom rights are enforced for this session: the database, or the programs only."""
    health, _ = await rt.read_model.health()
    if rt.embedded:
        return []
    if health.kind == "owner":
        text = f"{health.role} owns the schema: rights are enforced by the programs only"
        then = "give each process a role of its own; see docs/security.md"
        return [Finding("rights", "ok", text, then)]
    if health.kind == "none":
        text = f"{health.role} is in none of the roles draftsman_worker, _bot, _person, _reader"
        then = "let a DBA make it a member of the one that fits; see docs/security.md"
        return [Finding("rights", "fail", text, then)]
    return [Finding("rights", "ok", f"enforced by the database: {health.role} is a {health.kind}")]


async def _people(rt: Runtime) -> Sequence[Finding]:
    me = await rt.actor()
    if rt.embedded:
        return [Finding("people", "ok", f"the database is yours, {me.display_name}: you may all")]
    table = f'[people.{me.id}] with login = "{me.id}"'
    roles = 'roles = ["invoker", "responder", "approver", "operator"]'
    if not rt.policy.people:
        then = f"add to the configuration {table} and {roles}"
        return [Finding("people", "fail", "nobody is configured, so nobody may do anything", then)]
    if me.person is None:
        then = f"add {table} and the roles that fit"
        text = f"you are {me.id!r} here, which is no person's login"
        return [Finding("people", "warn", text, then)]
    count = _count(len(rt.policy.people), "person", "people")
    if not await rt.people.directory():
        text = f"{count} of the configuration, none in the database; you are {me.person}"
        return [Finding("people", "warn", text, "draftsman people import")]
    return [Finding("people", "ok", f"{count}; you are {me.person}: {', '.join(sorted(me.roles))}")]


async def _workers(rt: Runtime) -> Sequence[Finding]:
    found = await rt.read_model.workers()
    states = {one.id: health_of(one, rt.settings) for one in found}
    live = [one for one in found if states[one.id] != "lost"]
    if not live:
        return [Finding("workers", "warn", "none is running, so nothing runs", "draftsman up")]
    slots = sum(one.slots for one in live)
    said = [Finding("workers", "ok", f"{len(live)} with {slots} slots")]
    if not any(one.leader for one in live):
        then = "start one without --no-leader"
        said.append(Finding("leader", "warn", "no worker leads: nothing expires or retries", then))
    return said


async def _listen(rt: Runtime) -> Sequence[Finding]:
    url = rt.settings.listen_url
    name = "listen_url" if url else "database_url"
    try:
        heard = await rt.read_model.receives_notifications(url.get_secret_value() if url else None)
    except DraftsmanError as error:
        then = "set listen_url to a session connection"
        return [Finding("notifications", "fail", f"{name}: {error}", then)]
    if not heard:
        text = f"{name}: notifications do not arrive, so everything waits for the next poll"
        then = "through a transaction pooler? set listen_url to a session connection"
        return [Finding("notifications", "warn", text, then)]
    deaf = [one for one in await rt.read_model.workers() if not one.connected]
    deaf = [one for one in deaf if health_of(one, rt.settings) == "alive"]
    if deaf:
        name = f"{worker_name(deaf[0].id)} on {deaf[0].host}"
        text = f"worker {name} has no session of its own: it only polls"
        then = "through a transaction pooler? set listen_url to a session connection"
        return [Finding("notifications", "warn", text, then)]
    return [Finding("notifications", "ok", "they arrive")]


async def _archives(rt: Runtime) -> Sequence[Finding]:
    """Look for the archives that were written on this host."""
    found = [one for one in await rt.archives.all() if one.host == host.name()]
    gone = [one for one in found if not Path(one.path).exists()]
    if not gone:
        return [Finding("archives", "ok", _count(len(found), "file"))] if found else []
    text = f"{gone[0].path} is gone, with {gone[0].events:,} events of {gone[0].month:%Y-%m}"
    return [Finding("archives", "warn", text, "bring it back from a backup")]


async def _deliveries(rt: Runtime) -> Sequence[Finding]:
    """Say what nobody was told, what nobody delivers, and which webhook could not be signed."""
    from draftsman.domain.messages.delivery import ChannelName
    from draftsman.outbound import secret_values

    said = []
    for channel in ChannelName:
        if (due := await rt.delivery_sender.next_due(channel) or 0) < -LATE:
            text = f"messages to {channel} are {times.span(-due)} late: nobody delivers them"
            then = "start what does, a worker or a bot; see: draftsman deliveries --status pending"
            said.append(Finding("deliveries", "warn", text, then))
    if dead := await rt.outbox.dead_count():
        text = f"{_count(dead, 'is', 'are')} dead: given up"
        then = "draftsman deliveries --status dead_letter, then draftsman redeliver --dead"
        said.append(Finding("deliveries", "warn", text, then))
    for name, hook in rt.settings.webhooks.items():
        try:
            secret_values.signing_keys(hook, name)
        except DraftsmanError as error:
            then = "a worker needs it: set it where the worker runs"
            said.append(Finding("webhooks", "warn", str(error), then))
    return said


async def _dead_letters(rt: Runtime) -> Sequence[Finding]:
    """Say where dead letters are reported that no target of their job hears of, and whose are not.

    A request from chat has its thread or card as a target; one from the terminal may have none.
    """
    told = rt.settings.notifications
    silent = [(who, count) for who, wanted, count in await rt.outbox.unnotified() if wanted]
    quiet = f"; --notify none: {_requesters(silent)}" if silent else ""
    if told.fallback != NONE:
        where = told.fallback
        if where == "log":
            where = str(told.log_file or rt.settings.data_dir / "notifications.jsonl")
        return [Finding("dead letters", "ok", f"without a target they go to {where}{quiet}")]
    if told.targets:
        return [Finding("dead letters", "ok", f"to {', '.join(told.targets)}{quiet}")]
    found = [(who, count) for who, wanted, count in await rt.outbox.unnotified() if not wanted]
    now = f"; of the unfinished jobs, those of {_requesters(found)}" if found else ""
    text = f"nobody is notified of those requested without --notify{now}{quiet}"
    then = "set [notifications] targets or fallback"
    return [Finding("dead letters", "warn", text, then)]


def _requesters(found: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{who} ({_count(count, 'job')})" for who, count in found)


CHECKS: Final = (
    _server, _migrations, _rights, _clock, _people, _workers, _listen, _archives, _deliveries,
    _dead_letters, check_trello,
)  # fmt: skip


LOOKS: Final = (
    doctor_checks.variables,
    doctor_checks.handlers,
    doctor_checks.programs,
    doctor_checks.default_agent,
    doctor_checks.dashboard,
)


def _report_invariants(app: App, found: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
    broken = [BrokenInvariant(name, row[0], row[1]) for name, rows in found.items() for row in rows]
    if app.json:
        app.out.document({"checked": list(found), "broken": broken})
    elif broken:
        rows = [(styled(f"D-{one.job}", "bold"), one.invariant, one.how) for one in broken]
        app.out.table(("JOB", "INVARIANT", "HOW"), rows, flexible=2)
    else:
        app.out.print(f"all {len(found)} invariants hold")
    if broken:
        raise DraftsmanError(f"{_count(len(broken), 'row breaks', 'rows break')} an invariant")


def _lines(finding: Finding) -> list[Any]:
    status = styled(f"{finding.status:<4}", STYLES[finding.status])
    first = line(status, f"  {finding.name:<14}  {one_line(finding.text)}")
    return [first, styled(f"      → {one_line(finding.then)}", "cyan")] if finding.then else [first]


def _where(app: App) -> str:
    if app.settings.database_url is None:
        return "draftsman db status"
    return "is DRAFTSMAN_DATABASE_URL (database_url) right, and the server up?"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
