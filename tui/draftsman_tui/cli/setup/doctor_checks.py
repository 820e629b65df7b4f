"""What `doctor` looks at on this machine: the configuration file, git, the agents' programs."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from draftsman.errors import ConfigError, DraftsmanError

if TYPE_CHECKING:
    from draftsman.handlers.sandbox.mode_detection import SandboxMode
    from draftsman.settings import Settings

OLDEST_GIT: Final = (2, 32)
"""The first git that honours GIT_CONFIG_GLOBAL, which keeps a user's hooks out of our runs."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at; `then` says what to do about it."""

    name: str
    status: Literal["ok", "warn", "fail"]
    text: str
    then: str | None = None


def configuration(explicit: Path | None) -> Finding:
    """Say which file is read; that it could be is known by now."""
    from draftsman import settings

    found = settings.config_path(explicit)
    return Finding("configuration", "ok", str(found) if found else "no file; the defaults hold")


def variables(settings: Settings) -> Iterator[Finding]:
    """Yield the `DRAFTSMAN_*` variables that nothing reads."""
    from draftsman.settings import unread_variables

    for unknown in unread_variables(settings):
        text = f"{unknown.name} is set and nothing reads it"
        yield Finding("environment", "warn", text, unknown.hint)


def git() -> Finding:
    """Look for a git that is new enough."""
    found = shutil.which("git")
    if found is None:
        return Finding("git", "fail", "there is no git on PATH", "install git")
    try:
        command = [found, "--version"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("git", "fail", f"{found} does not run: {error}", "install git anew")
    version = re.search(r"(\d+)\.(\d+)[\d.]*", done.stdout)
    if version is None:
        return Finding("git", "warn", f"{found} does not tell its version")
    if (int(version[1]), int(version[2])) < OLDEST_GIT:
        wanted = ".".join(map(str, OLDEST_GIT))
        return Finding(
            "git", "fail", f"git {version[0]} is too old", f"install git {wanted} or later"
        )
    return Finding("git", "ok", f"git {version[0]}")


def handlers(settings: Settings) -> Iterator[Finding]:
    """Import every configured handler, as a worker would."""
    from draftsman.handlers import registry

    for name, path in sorted(settings.handlers.items()):
        try:
            registry.load({name: path})
        except ConfigError as error:
            then = "install its package beside draftsman, or put its folder on PYTHONPATH"
            yield Finding(f"handler {name}", "fail", str(error), then)
        else:
            yield Finding(f"handler {name}", "ok", path)


def programs(settings: Settings) -> Iterator[Finding]:
    """Prove which mode of the sandbox holds here, and look from inside it for each agent."""
    from draftsman.errors import Failure
    from draftsman.handlers.sandbox import mode_detection
    from draftsman.handlers.subprocesses import command_check

    found = None
    try:
        found = mode_detection.choose_mode(settings.sandbox)
    except Failure as error:
        yield Finding("sandbox", "fail", f"no run starts: {error}", "see docs/sandbox.md")
    else:
        yield _sandbox(settings, found)
    for name, agent in sorted(settings.agents.items()):
        if (problem := command_check.find_command_problem(agent, found)) is not None:
            yield Finding(f"agent {name}", "fail", *problem)
        elif (risk := command_check.relative_arguments(agent)) is not None:
            yield Finding(f"agent {name}", "warn", risk, "give its whole path")
        else:
            yield Finding(f"agent {name}", "ok", " ".join(agent.command))


def _sandbox(settings: Settings, found: SandboxMode) -> Finding:
    """Return what the mode that holds means."""
    from draftsman.handlers.sandbox import mode_detection

    if found.mode == "off":
        then = 'set [sandbox] mode = "auto"'
        return Finding("sandbox", "warn", "off: programs read and reach what this user does", then)
    if found.mode == "landlock" and settings.sandbox.mode == "auto":
        text = f"landlock: other processes and unix sockets stay visible ({found.weaker[0]})"
        return Finding("sandbox", "warn", text, mode_detection.ALLOW_NAMESPACES)
    return Finding("sandbox", "ok", f"{found.mode}: every attempt to escape failed")


def default_agent(settings: Settings) -> Iterator[Finding]:
    """Say which agent works where a request names none, where there is more than one."""
    if settings.default_agent is not None:
        yield Finding("default agent", "ok", settings.default_agent)
    elif len(settings.agents) > 1:
        names = ", ".join(sorted(settings.agents))
        text = f"none of {names}: each request has to name its agent"
        yield Finding("default agent", "warn", text, "set default_agent, or give --agent")


def dashboard(settings: Settings) -> Iterator[Finding]:
    """Look at what the dashboard would begin with, and at what it kept."""
    if importlib.util.find_spec("textual") is None:
        return
    from draftsman_tui.dashboard.launch_options import resolve_options
    from draftsman_tui.dashboard.preferences import Preferences

    try:
        for warning in resolve_options(settings.dashboard).warnings:
            yield Finding("dashboard", "warn", warning)
    except DraftsmanError as error:
        yield Finding("dashboard", "fail", str(error))
    for problem in Preferences().problems():
        yield Finding("dashboard", "warn", problem)
