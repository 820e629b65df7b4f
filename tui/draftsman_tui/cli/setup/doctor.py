"""The `doctor` command: checks of the installation, with suggested fixes.

Each check is a function that returns findings, and a failing check does not prevent later checks.
`warn`: works, with a problem; `fail`: does not work.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Unpack

import click

from draftsman.deliveries.target import NONE
from draftsman.entities.workers import health_of
from draftsman.errors import (
    ConfigError,
    DatabaseUnreachable,
    DraftsmanError,
    SchemaOutdated,
    UsageError,
)
from draftsman.formats import times
from draftsman.formats.amounts import counted
from draftsman.formats.invisible import one_line
from draftsman.ids import account_name, job_name, worker_name
from draftsman.jobs.job import Status
from draftsman.processes import host
from draftsman.queues.queue_models import reservation_text
from draftsman.repos.repo_catalog import RepoLocation
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.repos.forge_access import check_access
from draftsman_tui.cli.setup import doctor_checks
from draftsman_tui.cli.setup.doctor_checks import Finding
from draftsman_tui.cli.setup.live import LiveOptions, check_live
from draftsman_tui.terminal import stdio
from draftsman_tui.terminal.output import check_lines, styled

if TYPE_CHECKING:
    from datetime import datetime

    from draftsman.database.server_health import ServerHealth
    from draftsman.runtime import Runtime

OLDEST: Final = 15
"""Minimum major version of PostgreSQL."""
PROGRESS_INTERVAL: Final = 1.0
"""Seconds between updates of the progress."""
SKEW: Final = 2.0
"""Maximum clock difference in seconds without a warning."""
MAX_NAPTIME: Final = 60.0
"""Maximum `autovacuum_naptime` in seconds without a warning: that of PostgreSQL."""
OLD_SNAPSHOT: Final = 600.0
"""Seconds for which a transaction may be open without a warning."""
MAX_PAUSED: Final = 10
"""Maximum number of paused jobs that are named."""
MAX_SCHEDULES: Final = 500
"""Maximum number of schedules that are checked."""
MAX_REPOS: Final = 20
"""Maximum number of repositories of a forge whose access is checked."""


@dataclass(frozen=True, slots=True)
class BrokenInvariant:
    """A row that violates an invariant of the data."""

    invariant: str
    job: int
    problem: str


@command(
    "doctor",
    section="Setup",
    examples=(
        "draftsman doctor",
        "draftsman doctor --invariants",
        "draftsman doctor --live slack --in C012ABCDEF --report slack.md",
        "draftsman doctor --live trello --yes --quick",
        "draftsman doctor --live github --in acme/scratch#1",
    ),
)
@click.option("--invariants", is_flag=True, help="Check the data invariants instead.")
@click.option(
    "--live",
    metavar="SERVICE",
    help="Try what draftsman assumes of a service, such as slack, trello, mail or a forge, by"
    " writing to it.",
)
@click.option(
    "--in",
    "scratch",
    metavar="PLACE",
    help="Where --live writes: a channel, a board or an issue for tests.",
)
@click.option("--quick", is_flag=True, help="Leave out what takes minutes, with --live.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the results of --live as Markdown, without secrets.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask before --live writes.")
async def doctor(
    app: App, invariants: bool, live: str | None, **options: Unpack[LiveOptions]
) -> None:
    """Check the installation and suggest fixes.

    Exits with 1 if a check fails, with --invariants if a row violates an invariant, or with --live
    if an assumption does not hold or could not be tried. What --live creates is removed, also after
    an interruption.
    """
    if live is not None:
        if invariants:
            raise UsageError("use either --live or --invariants")
        await check_live(app, live, **options)
        return
    if given := [name for name, value in options.items() if value]:
        option = "--in" if given[0] == "scratch" else f"--{given[0]}"
        raise UsageError(f"{option} needs --live SERVICE")
    if invariants:
        async with app.runtime(read_only=True) as rt:
            _report_invariants(app, await rt.read_model.invariants())
        return
    findings: list[Finding] = []
    # closed even on a broken pipe, because the checks hold a connection
    on_screen = not app.json and stdio.is_terminal(sys.stderr)
    async with contextlib.aclosing(_checks(app)) as checks, progress(findings, on_screen) as clear:
        async for finding in checks:
            clear()
            findings.append(finding)
            if not app.json:
                name = finding.name
                app.out.print(*check_lines(finding.status, finding.text, finding.hint, name))
    failed = [finding for finding in findings if finding.status == "fail"]
    if app.json:
        app.out.document({"ok": not failed, "checks": findings})
    if failed:
        raise DraftsmanError(counted(len(failed), "check") + " failed")


@contextlib.asynccontextmanager
async def progress(
    findings: Sequence[Finding], on_screen: bool
) -> AsyncIterator[Callable[[], None]]:
    """Show people on a terminal how long the next check takes; yield what clears that line."""
    loop = asyncio.get_running_loop()
    began = loop.time()

    def clear() -> None:
        nonlocal began
        began = loop.time()
        if on_screen:
            stdio.write_stderr("\r\x1b[K")

    async def show() -> None:
        while True:
            await asyncio.sleep(PROGRESS_INTERVAL)
            if (seconds := loop.time() - began) >= PROGRESS_INTERVAL:
                done = counted(len(findings), "result")
                length = times.span(seconds)
                stdio.write_stderr(f"\r{done}; the next check: {length}\x1b[K")

    showing = asyncio.create_task(show()) if on_screen else None
    try:
        yield clear
    finally:
        if showing is not None:
            showing.cancel()
            clear()


async def _checks(app: App) -> AsyncGenerator[Finding, None]:
    settings = app.settings
    yield doctor_checks.configuration(app.config)
    connected = False
    try:
        async with app.runtime(read_only=True) as rt:
            for check in CHECKS:
                for finding in await check(rt):
                    yield finding
            connected = True
            async for finding in doctor_checks.check_channels(settings, rt):
                yield finding
    except SchemaOutdated as error:
        yield Finding("migrations", "fail", str(error))
    except DraftsmanError as error:
        yield Finding("database", "fail", str(error), _database_hint(app))
    if not connected:
        async for finding in doctor_checks.check_channels(settings, None):
            yield finding
    yield doctor_checks.git()
    yield await doctor_checks.commits(settings.git)
    for local_check in LOCAL_CHECKS:
        for finding in local_check(settings):
            yield finding


async def _server(rt: Runtime) -> Sequence[Finding]:
    health, _ = await rt.read_model.health()
    kind = "embedded" if rt.embedded else f"as {health.role}"
    origin = ", from DATABASE_URL" if rt.settings.uses_fallback_url else ""
    text = f"PostgreSQL {health.version}, {kind}{origin}"
    if int(health.version.split(".")[0].split("beta")[0]) < OLDEST:
        return [Finding("database", "fail", text, f"upgrade to version {OLDEST} or later")]
    if health.fsync != "on" or health.synchronous_commit == "off":
        risk = f"fsync {health.fsync}, synchronous_commit {health.synchronous_commit}"
        then = "a power failure may lose acknowledged jobs; turn both settings on"
        return [Finding("database", "ok", text), Finding("durability", "warn", risk, then)]
    return [Finding("database", "ok", text), Finding("durability", "ok", "fsync on")]


async def _vacuum(rt: Runtime) -> Sequence[Finding]:
    """Warn about what lets claims of a deep queue and tables grow with each job."""
    health, _ = await rt.read_model.health()
    findings = [*vacuum_settings(health)]
    snapshot = await rt.read_model.oldest_snapshot()
    if snapshot is not None and snapshot.seconds > OLD_SNAPSHOT:
        text = f"{snapshot.holder} has a transaction open for {times.span(snapshot.seconds)}"
        text += ", so no row that was replaced since is removed"
        then = f"end it, or in psql: {snapshot.end}; see: draftsman help --page growth"
        findings.append(Finding("vacuum", "warn", text, then))
    return findings


def vacuum_settings(health: ServerHealth) -> Sequence[Finding]:
    """Warn about settings of the server that keep vacuum from running often enough."""
    see = "; see: draftsman help --page growth#vacuum"
    if not health.autovacuum:
        text = "autovacuum does not run, so tables grow with each job, and claims take longer"
        then = f"turn autovacuum and track_counts on{see}"
        return [Finding("vacuum", "warn", text, then)]
    if health.naptime > MAX_NAPTIME:
        text = f"autovacuum starts only every {times.span(health.naptime)} (autovacuum_naptime)"
        return [Finding("vacuum", "warn", text, f"set it to 1min or less{see}")]
    return []


async def _migrations(rt: Runtime) -> Sequence[Finding]:
    from draftsman.database import migrate

    try:
        state = await migrate.schema_state(rt.db.session_url)
    except SchemaOutdated:
        raise
    except (ConfigError, DatabaseUnreachable) as error:  # later checks do not need this session
        return [Finding("migrations", "fail", f"not checked: {error}")]
    if missing := [item.name for item in state.pending]:
        return [
            Finding("migrations", "fail", f"missing: {', '.join(missing)}", "draftsman migrate")
        ]
    return [
        Finding("migrations", "ok", f"all {len(state.migrations)} applied"),
        *(Finding("migrations", "warn", warning) for warning in state.warnings),
    ]


async def _clock(rt: Runtime) -> Sequence[Finding]:
    _, offset = await rt.read_model.health()
    if abs(offset) <= SKEW:
        return [Finding("clock", "ok", f"within {SKEW:.0f} s of the database server")]
    direction = "ahead of" if offset > 0 else "behind"
    text = f"{times.span(offset)} {direction} the database server, whose clock is used"
    return [Finding("clock", "warn", text, "synchronize both clocks with NTP")]


async def _rights(rt: Runtime) -> Sequence[Finding]:
    """Report whether the database or only the programs enforce the rights of this session."""
    health, _ = await rt.read_model.health()
    if rt.embedded:
        return []
    if health.kind == "owner":
        text = f"{health.role} owns the schema, so only the programs enforce rights"
        then = "use a separate role for each process; see: draftsman help --page security"
        return [Finding("rights", "ok", text, then)]
    if health.kind == "none":
        text = f"{health.role} is not a member of draftsman_worker, _bot, _person or _reader"
        then = (
            "ask a DBA to grant membership in the appropriate role;"
            " see: draftsman help --page security#roles"
        )
        return [Finding("rights", "fail", text, then)]
    return [Finding("rights", "ok", f"enforced by the database: {health.role} is a {health.kind}")]


async def _people(rt: Runtime) -> Sequence[Finding]:
    me = await rt.actor()
    if rt.embedded:
        text = f"embedded database of {me.display_name}: you have every role"
        return [Finding("people", "ok", text)]
    table = f'[people.{me.id}] with login = "{me.id}"'
    roles = 'roles = ["invoker", "responder", "approver", "operator"]'
    if not rt.policy.people:
        then = f"add to the configuration: {table} and {roles}"
        text = "no people are configured, so all requests are refused"
        return [Finding("people", "fail", text, then)]
    if me.person is None:
        then = f"add {table} and the appropriate roles"
        text = f"your login {me.id!r} does not belong to a configured person"
        return [Finding("people", "warn", text, then)]
    count = counted(len(rt.policy.people), "person", "people")
    if not await rt.people.directory():
        text = f"{count} in the configuration, none in the database; you are {me.person}"
        return [Finding("people", "warn", text, "draftsman people import")]
    return [Finding("people", "ok", f"{count}; you are {me.person}: {', '.join(sorted(me.roles))}")]


async def _workers(rt: Runtime) -> Sequence[Finding]:
    workers = await rt.read_model.workers()
    live = [worker for worker in workers if health_of(worker, rt.settings) != "lost"]
    if not live:
        text = "no worker is running, so no jobs run"
        return [Finding("workers", "warn", text, "draftsman up")]
    slots = sum(worker.slots for worker in live)
    findings = [Finding("workers", "ok", f"{len(live)} with {slots} slots")]
    if not any(worker.leader for worker in live):
        then = "start a worker without --no-leader"
        text = "no leader, so sweeps do not run: no retries, reminders or expiry"
        findings.append(Finding("leader", "warn", text, then))
    return findings


async def _session_settings(rt: Runtime) -> Sequence[Finding]:
    """Report settings of the database and the role that draftsman does not replace."""
    if not (foreign := await rt.read_model.foreign_settings()):
        return []
    text = f"defined for the database or the role: {', '.join(foreign)}"
    then = (
        "unless intended, ALTER ROLE … RESET or ALTER DATABASE … RESET;"
        " see: draftsman help --page connections#settings-of-sessions"
    )
    return [Finding("settings", "warn", text, then)]


async def _types(rt: Runtime) -> Sequence[Finding]:
    """Report the types of waiting jobs that no live worker handles."""
    then = "add the type to [handlers] of a worker, or cancel the jobs: draftsman jobs --type TYPE"
    return [
        Finding("types", "warn", item.text, then) for item in await rt.queues.waiting_for_types()
    ]


async def _listen(rt: Runtime) -> Sequence[Finding]:
    name = "listen_url" if rt.settings.listen_url else "database_url"
    if rt.db.behind_pooler and name == "database_url":
        text = "database_url leads to a transaction pooler, so no worker and no bot can start"
        then = "set listen_url to the server itself; see: draftsman help --page connections"
        return [Finding("notifications", "fail", text, then)]
    try:
        received = await rt.read_model.receives_notifications()
    except DraftsmanError as error:
        then = "set listen_url to a direct connection, not through a transaction pooler"
        return [Finding("notifications", "fail", f"{name}: {error}", then)]
    then = "if a transaction pooler is used, set listen_url to a direct connection"
    if not received:
        text = f"{name}: notifications are not received, so changes are only found by polling"
        return [Finding("notifications", "warn", text, then)]
    polling = [worker for worker in await rt.read_model.workers() if not worker.connected]
    polling = [worker for worker in polling if health_of(worker, rt.settings) == "alive"]
    if polling:
        name = f"{worker_name(polling[0].id)} on {polling[0].host}"
        text = f"worker {name} has no session for notifications and only polls"
        return [Finding("notifications", "warn", text, then)]
    return [Finding("notifications", "ok", "received")]


async def _profile_commits(rt: Runtime) -> Sequence[Finding]:
    """Check the commits of the repositories whose profile has its own author or committer."""
    findings = []
    for repo in (await rt.repos.catalog()).repos:
        for saved in await rt.repos.profiles(repo):
            settings = rt.settings.git.override(saved.profile.git)
            if settings.committed_by != rt.settings.git.committed_by:
                name = RepoLocation(repo, saved.profile.path).name
                findings.append(await doctor_checks.commits(settings, f"profile of {name}"))
    return findings


async def _archives(rt: Runtime) -> Sequence[Finding]:
    """Check the archive files that were written on this host."""
    archives = [archive for archive in await rt.archives.all() if archive.host == host.name()]
    missing = [archive for archive in archives if not Path(archive.path).exists()]
    if not missing:
        return [Finding("archives", "ok", counted(len(archives), "file"))] if archives else []
    first = missing[0]
    text = f"{first.path} is missing, with {counted(first.events, 'event')} of {first.month:%Y-%m}"
    return [Finding("archives", "warn", text, "restore the file from a backup")]


async def _deliveries(rt: Runtime) -> Sequence[Finding]:
    """Check for late and dead-letter deliveries, and the targets that a worker here would have."""
    from draftsman.deliveries.channels.worker_channels import worker_channels

    findings = []
    for target in await rt.outbox.unserved():
        text = f"{target.text}, for {times.span(target.seconds)}"
        then = "start a worker or bot that has it; see: draftsman deliveries --status pending"
        findings.append(Finding("deliveries", "warn", text, then))
    if dead := await rt.outbox.dead_letter_count():
        text = counted(dead, "dead-letter delivery", "dead-letter deliveries")
        then = "draftsman deliveries --status dead_letter, then draftsman redeliver --dead-letters"
        findings.append(Finding("deliveries", "warn", text, then))
    then = "set it in the environment of the worker"
    for channel in worker_channels(rt.settings):
        findings += [Finding(channel.name, "warn", text, then) for text in channel.problems()]
    return findings


async def _dead_letters(rt: Runtime) -> Sequence[Finding]:
    """Check where dead letters are reported, and which jobs have no target.

    A job from chat has its thread or card as a target; a job from the terminal may have none.
    """
    notifications = rt.settings.notifications
    unnotified = await rt.outbox.unnotified()
    opted_out = [(requester, count) for requester, by_choice, count in unnotified if by_choice]
    quiet = f"; with --notify none: {_requesters(opted_out)}" if opted_out else ""
    if notifications.fallback != NONE:
        target = notifications.fallback
        if target == "log":
            target = str(notifications.log_file or rt.settings.data_dir / "notifications.jsonl")
        return [Finding("dead letters", "ok", f"jobs without a target report to {target}{quiet}")]
    if notifications.targets:
        return [Finding("dead letters", "ok", f"to {', '.join(notifications.targets)}{quiet}")]
    without = [(requester, count) for requester, by_choice, count in unnotified if not by_choice]
    now = f"; unfinished jobs of {_requesters(without)}" if without else ""
    text = f"no notification for jobs submitted without --notify{now}{quiet}"
    then = "set [notifications] targets or fallback"
    return [Finding("dead letters", "warn", text, then)]


async def _code_owners(rt: Runtime) -> Sequence[Finding]:
    """Report code owners of the configuration that are mapped to no person or group."""
    unknown = sorted(
        owner for owner, name in rt.settings.codeowners.items() if not rt.policy.knows(name)
    )
    if not unknown:
        return []
    names = ", ".join(f"{owner} = {rt.settings.codeowners[owner]}" for owner in unknown[:5])
    remainder = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
    text = f"no person or group of this name: {names}{remainder}"
    return [Finding("codeowners", "warn", text, "correct [codeowners], or add the person")]


def _people_of_forge(rt: Runtime, name: str) -> Finding | None:
    """Warn about a forge whose comments are read, and where no person has a login."""
    if name not in rt.settings.read_forges or any(
        login.startswith(f"{name}:".casefold()) for login in _logins(rt)
    ):
        return None
    text = "no person has a login there, so comments request and answer nothing"
    hint = f"draftsman people set NAME --account forge:{name}:LOGIN"
    return Finding(f"forge {name}", "warn", text, hint)


def _logins(rt: Runtime) -> list[str]:
    """Return all logins of people on forges, as `FORGE:LOGIN`."""
    return [id for person in rt.policy.people.values() for id in person.accounts("forge")]


def _logins_without_forge(rt: Runtime) -> Sequence[Finding]:
    """Warn about logins of people on forges that are not configured."""
    known = {name.casefold() for name in rt.settings.forges}
    unknown = sorted(id for id in _logins(rt) if known and id.partition(":")[0] not in known)
    text = f"no table of [forges] has the name in: {', '.join(unknown[:5])}"
    hint = f"correct forge in [people], or people set --account; tables: {', '.join(sorted(known))}"
    return [Finding("people", "warn", text, hint)] if unknown else []


async def _forges(rt: Runtime) -> Sequence[Finding]:
    """Check the token of each forge on the registered repositories there."""
    from draftsman.forges.api.connection import forge_settings

    sources: dict[str, list[str]] = {name: [] for name in rt.settings.forges}
    for repo in (await rt.repos.catalog()).repos if sources else ():
        if (found := forge_settings(rt.settings, repo.remote_url)) is not None:
            sources[found[0]].append(repo.remote_url)
    findings = [*_logins_without_forge(rt)]
    for name, found_sources in sources.items():
        if not found_sources:
            text = f"no registered repository is on {rt.settings.forges[name].url}"
            findings.append(Finding(f"forge {name}", "warn", text, "draftsman repos add URL"))
        if (finding := _people_of_forge(rt, name)) is not None:
            findings.append(finding)
        if (more := len(found_sources) - MAX_REPOS) > 0:
            text = f"{counted(more, 'repository', 'repositories')} not checked"
            findings.append(Finding(f"forge {name}", "ok", text, "draftsman repos check NAME"))
        for source in found_sources[:MAX_REPOS]:
            access = await check_access(rt.settings, source)
            if access is not None:
                findings.append(Finding(f"forge {name}", access.status, access.text, access.hint))
    return findings


def _requesters(counts: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{requester} ({counted(count, 'job')})" for requester, count in counts)


async def _pauses(rt: Runtime) -> Sequence[Finding]:
    """Report what people paused or reserved, since when and why, and what waits for it."""
    findings = []
    for queue in await rt.queues.all():
        for pause in queue.pauses:
            waiting = await rt.read_model.counts(
                queue=queue.name, type=pause.type, statuses=[Status.QUEUED, Status.RESUMED]
            )
            option = f" --type {pause.type}" if pause.type else ""
            text = _paused(pause.paused_at, pause.paused_by, pause.reason)
            jobs = counted(sum((waiting or {}).values()), "job waits", "jobs wait")
            then = f"draftsman queues resume {queue.name}{option}"
            findings.append(Finding("queues", "warn", f"the {pause.name} {text}; {jobs}", then))
        if (held := queue.reservation) is not None and queue.held + queue.queued:
            text = reservation_text(queue.name, held.job, held.actor, held.expires_at)
            jobs = counted(queue.held + queue.queued, "job waits", "jobs wait")
            then = f"draftsman queues release {queue.name}"
            findings.append(Finding("queues", "warn", f"{text}; {jobs}", then))
    jobs_page = await rt.read_model.page(paused=True, limit=MAX_PAUSED)
    for job in jobs_page.jobs:
        if job.paused_at is not None:
            text = _paused(job.paused_at, job.paused_by or "", job.pause_reason or "")
            then = f"draftsman resume {job_name(job.number)}"
            findings.append(Finding("jobs", "warn", f"{job_name(job.number)} {text}", then))
    if len(jobs_page.jobs) == MAX_PAUSED:
        then = "draftsman jobs --status paused"
        findings.append(Finding("jobs", "warn", "there may be more paused jobs", then))
    return findings


def _paused(since: datetime, by: str, reason: str) -> str:
    why = f": {one_line(reason)}" if reason else ""
    return f"is paused since {times.format_time(since)} by {account_name(by)}{why}"


async def _schedules(rt: Runtime) -> Sequence[Finding]:
    """Report the schedules whose next occurrence will not run, and those whose code is gone."""
    from draftsman.schedules.schedule import DECLARED_BY

    schedules = await rt.schedules.all()
    active = [item for item in schedules if item.paused_at is None and item.due_at]
    findings = [
        Finding(
            f"schedule {item.name}",
            "warn",
            f"is paused: {item.pause_reason}",
            f"deploy its code again, or: draftsman schedules remove {item.name}",
        )
        for item in schedules
        if item.paused_by == DECLARED_BY
    ]
    findings += [
        Finding(
            f"schedule {item.name}",
            "warn",
            _paused(item.paused_at, item.paused_by or "", item.pause_reason or ""),
            f"draftsman schedules resume {item.name}",
        )
        for item in schedules
        if item.paused_at is not None and item.paused_by != DECLARED_BY
    ]
    for schedule in active[:MAX_SCHEDULES]:
        if (problem := await rt.schedules.problem(schedule)) is not None:
            then = f"draftsman schedules show {schedule.name}"
            findings.append(Finding(f"schedule {schedule.name}", "warn", problem, then))
    if active and not findings:
        text = "no problem with the next occurrences"
        return [Finding("schedules", "ok", f"{counted(len(active), 'schedule')}, {text}")]
    return findings


CHECKS: Final = (
    _server, _vacuum, _migrations, _rights, _clock, _people, _workers, _types, _session_settings,
    _listen, _archives, _deliveries, _dead_letters, _pauses, _schedules, _code_owners, _forges,
    _profile_commits,
    doctor_checks.refused_methods,
)  # fmt: skip


LOCAL_CHECKS: Final = (
    doctor_checks.variables,
    doctor_checks.handlers,
    doctor_checks.packages,
    doctor_checks.programs,
    doctor_checks.default_agent,
    doctor_checks.dashboard,
    doctor_checks.calendars,
)


def _report_invariants(app: App, results: Mapping[str, Sequence[tuple[int, str]]]) -> None:
    broken = [
        BrokenInvariant(name, job, problem)
        for name, violations in results.items()
        for job, problem in violations
    ]
    if app.json:
        app.out.document({"checked": list(results), "broken": broken})
    elif broken:
        rows = [(styled(job_name(row.job), "bold"), row.invariant, row.problem) for row in broken]
        app.out.table(("JOB", "INVARIANT", "PROBLEM"), rows, flexible=2)
    else:
        app.out.print(f"all {len(results)} invariants hold")
    if broken:
        raise DraftsmanError(f"{counted(len(broken), 'row violates', 'rows violate')} an invariant")


def _database_hint(app: App) -> str:
    if app.settings.database_url is None:
        return "draftsman db status"
    if app.settings.uses_fallback_url:
        return "check DATABASE_URL, or unset it to use the embedded database"
    return "check DRAFTSMAN_DATABASE_URL (database_url) and that the server is running"
