"""Doctor checks of this machine, from configuration to dashboard, and of Slack and Trello."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from zoneinfo import ZoneInfo

from draftsman.errors import ConfigError, DraftsmanError, Failure, UsageError
from draftsman.formats import times
from draftsman.formats.amounts import counted
from draftsman_tui.terminal.extras import advice, missing, of_channel

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.sandbox.sandbox_plan import SandboxMode
    from draftsman.settings import Settings
    from draftsman.settings.git import GitSettings

OLDEST_GIT: Final = (2, 32)
"""Minimum version of git; it supports GIT_CONFIG_GLOBAL, which excludes the user's hooks."""
REFUSAL: Final = 600.0
"""Seconds from which a pause of a method is a refusal, and no rate limit."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a check; `then` suggests a fix."""

    name: str
    status: Literal["ok", "warn", "fail"]
    text: str
    hint: str | None = None


def configuration(explicit: Path | None) -> Finding:
    """Report the configuration file, which was read successfully before."""
    from draftsman.basic_settings import config_path

    path = config_path(explicit)
    return Finding("configuration", "ok", str(path) if path else "no file, using defaults")


async def refused_methods(rt: Runtime) -> Sequence[Finding]:
    """Report methods that a chat refused, and that are not used for a while."""
    from draftsman.channels import registry

    findings = []
    for bucket, seconds, reason in await rt.outbox.paused(REFUSAL):
        rest, _, place = bucket.partition(":")
        channel, _, method = rest.partition("#")
        where = f" in {place}" if place else ""
        text = f"{method or channel} is not used{where} for {times.span(seconds)}: {reason}"
        plugin = registry.find(channel)
        then = "messages are delivered without it"
        if plugin is not None and plugin.docs:
            then += f"; see: {plugin.docs}"
        findings.append(Finding(channel, "warn", text, then))
    return findings


def variables(settings: Settings) -> Iterator[Finding]:
    """Warn about unknown `DRAFTSMAN_*` environment variables."""
    from draftsman.settings import unread_variables

    for unknown in unread_variables(settings):
        text = f"unknown variable {unknown.name}"
        yield Finding("environment", "warn", text, unknown.hint)


def git() -> Finding:
    """Check that git is installed and recent enough."""
    path = shutil.which("git")
    if path is None:
        return Finding("git", "fail", "git is not on PATH", "install git")
    try:
        command = [path, "--version"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("git", "fail", f"{path} cannot be run: {error}", "reinstall git")
    version = re.search(r"(\d+)\.(\d+)[\d.]*", result.stdout)
    if version is None:
        return Finding("git", "warn", f"{path} did not report its version")
    if (int(version[1]), int(version[2])) < OLDEST_GIT:
        minimum = ".".join(map(str, OLDEST_GIT))
        return Finding(
            "git", "fail", f"git {version[0]} is too old", f"install git {minimum} or later"
        )
    return Finding("git", "ok", f"git {version[0]}")


async def commits(settings: GitSettings, table: str = "[git]") -> Finding:
    """Check author, committer and signature of commits, by making one."""
    from draftsman.agent_runs.clones.commit_check import check_signing
    from draftsman.agent_runs.clones.commits import CommitIdentity
    from draftsman.settings.git import DRAFTSMAN

    identity = CommitIdentity.of(settings, requester="")
    text = f"{table}: by {settings.author}, committed by {settings.committed_by}"
    if settings.sign_off and DRAFTSMAN in (settings.author, settings.committed_by):
        then = "set author and committer of [git], with an address that reads mail"
        return Finding("commits", "warn", f"{text}: no address to sign off with", then)
    if settings.signing_key is None:
        return Finding("commits", "ok", f"{text}, not signed")
    try:
        await check_signing(identity)
    except Failure as error:
        return Finding("commits", "fail", str(error), "see: draftsman help --page commits")
    return Finding("commits", "ok", f"{text}, signed with {settings.signing_key}")


def handlers(settings: Settings) -> Iterator[Finding]:
    """Import every configured handler."""
    from draftsman.handlers import registry

    for name, path in sorted(settings.handlers.items()):
        try:
            registry.load({name: path})
        except ConfigError as error:
            then = "install its package in the environment of draftsman, or add it to PYTHONPATH"
            yield Finding(f"handler {name}", "fail", str(error), then)
        else:
            yield Finding(f"handler {name}", "ok", path)


def packages(_: Settings) -> Iterator[Finding]:
    """Load what other packages declare: channels, kinds of forges, and coding agents."""
    from draftsman import plugins
    from draftsman.channels import registry
    from draftsman.settings import Settings, channel_tables
    from draftsman.settings.agents import AgentPlugin
    from draftsman.settings.forges import ForgePlugin

    problems = (
        *registry.problems(),
        *channel_tables.problems(Settings),
        *plugins.problems(plugins.FORGES, ForgePlugin),
        *plugins.problems(plugins.AGENTS, AgentPlugin),
    )
    for plugin, problem in problems:
        then = f"correct, upgrade or uninstall {plugin.package}"
        yield Finding(f"package {plugin.package}", "fail", problem, then)


def programs(settings: Settings) -> Iterator[Finding]:
    """Detect the sandbox mode and check each agent's command inside it."""
    from draftsman.sandbox import mode_detection
    from draftsman.sandbox.processes.agent_check import check_agent

    mode = None
    try:
        mode = mode_detection.choose_mode(settings.sandbox)
    except Failure as error:
        yield Finding(
            "sandbox", "fail", f"runs cannot start: {error}", "see: draftsman help --page sandbox"
        )
    else:
        yield _sandbox(settings, mode)
    yield _kinds(settings, mode)
    for name, agent in sorted(settings.agents.items()):
        checked = check_agent(name, agent, mode)
        if checked.problem is not None:
            yield Finding(f"agent {name}", "fail", checked.problem, checked.hint)
        elif checked.warning is not None:
            yield Finding(f"agent {name}", "warn", checked.warning, checked.hint)
        else:
            version = f"version {checked.version}: " if checked.version else ""
            yield Finding(f"agent {name}", "ok", version + " ".join(agent.command))


def _kinds(settings: Settings, chosen: SandboxMode | None) -> Finding:
    """Report the kinds of sandboxes that work here, and why the others do not."""
    from draftsman.sandbox import mode_detection

    known = {} if chosen is None or chosen.mode == "off" else {chosen.mode: None}
    kinds = mode_detection.available_kinds(settings.sandbox, known)
    works = ", ".join(kind for kind, problem in kinds.items() if problem is None) or "none"
    others = [f"{kind}: {problem}" for kind, problem in kinds.items() if problem is not None]
    return Finding("sandbox kinds", "ok", "; ".join([f"available: {works}", *others]))


def _sandbox(settings: Settings, mode: SandboxMode) -> Finding:
    """Report the protection of the sandbox mode."""
    from draftsman.sandbox import landlock
    from draftsman.sandbox.failed_modes import FailedMode

    if mode.mode == "off":
        then = 'set [sandbox] mode = "auto"'
        text = "off: programs have all access rights of this user"
        return Finding("sandbox", "warn", text, then)
    if mode.mode == "landlock" and settings.sandbox.mode == "auto":
        text = f"landlock: other processes and unix sockets are visible ({mode.weaker[0]})"
        return Finding("sandbox", "warn", text, mode.weaker[0].remedy)
    if mode.mode == "user" and (reason := landlock.problem()) is not None:
        text = f"user: files that every user of this host may read are visible ({reason})"
        return Finding("sandbox", "warn", text, FailedMode("landlock", reason).remedy)
    return Finding("sandbox", "ok", f"{mode.mode}: all escape attempts failed")


def default_agent(settings: Settings) -> Iterator[Finding]:
    """Warn if several agents are configured without a default."""
    if settings.only_tidies:
        text = "tidy, the only agent, ignores instructions: it runs validation and fix commands"
        then = (
            "for one that follows them, add [agents.claude] or another;"
            " see: draftsman help --page coding-agents#enable-an-agent"
        )
        yield Finding("default agent", "ok", text, then)
    elif settings.default_agent is not None:
        yield Finding("default agent", "ok", settings.default_agent)
    elif len(settings.agents) > 1:
        names = ", ".join(sorted(settings.agents))
        text = f"not set; each request has to name an agent: {names}"
        yield Finding("default agent", "warn", text, "set default_agent, or use --agent")


def dashboard(settings: Settings) -> Iterator[Finding]:
    """Check the dashboard's configuration and saved preferences."""
    if importlib.util.find_spec("textual") is None:
        return
    from draftsman_tui.dashboard.launch_options import resolve_options
    from draftsman_tui.dashboard.preferences import Preferences

    try:
        resolve_options(settings.dashboard)
    except DraftsmanError as error:
        yield Finding("dashboard", "fail", str(error))
    for problem in Preferences().problems():
        yield Finding("dashboard", "warn", problem)


def calendars(settings: Settings) -> Iterator[Finding]:
    """Read the calendar files of holidays and on-call schedules."""
    tables = {f"holidays {name}": table.file for name, table in settings.holidays.items()}
    tables |= {f"oncall {name}": table.file for name, table in settings.oncall.items()}
    for check, file in sorted(tables.items()):
        if file is None:
            continue
        from draftsman.calendars.calendar_reader import read_calendar_blocking
        from draftsman.calendars.holiday_calendar import AHEAD

        now = datetime.now(UTC)
        try:
            data = file.read_bytes()
            events = read_calendar_blocking(data, now, now + AHEAD, ZoneInfo("UTC"))
        except OSError as error:
            then = "correct file in the configuration; until then it has no days and no duties"
            yield Finding(check, "fail", f"{file}: {error.strerror}", then)
        except (Failure, UsageError) as error:
            yield Finding(check, "fail", f"{file}: {error}", "replace it with an iCalendar file")
        else:
            text = f"{file}, {counted(len(events), 'event')} from now on"
            yield Finding(check, "ok" if events else "warn", text)


async def check_channels(settings: Settings, rt: Runtime | None) -> AsyncIterator[Finding]:
    """Make the checks of the configured channels.

    `rt` is None while the database cannot be reached.
    """
    from draftsman import plugins
    from draftsman.channels import registry

    for channel in registry.channels():
        if channel.doctor is None or channel.setup(settings) is not None:
            continue
        name, extra = channel.table, of_channel(channel.name)
        if missing(extra) is not None:
            yield Finding(name, "fail", advice(extra))
            continue
        try:
            async for check in plugins.resolve(channel.doctor)(settings, rt):
                yield Finding(name, check.status, check.text, check.hint)
        except Exception as error:
            plugin = plugins.find(plugins.CHANNELS, channel.name)
            text = f"the checks of {plugin} failed: {type(error).__name__}: {error}"
            yield Finding(name, "fail", text, f"report it to the authors of {plugin.package}")
