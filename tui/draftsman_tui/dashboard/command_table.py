"""Table of the dashboard's commands.

Key bindings (remapped by command name), the footer, the command line and its completion, the
palette and the help are all generated from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from textual.binding import Binding

from draftsman.domain.people.policy import Policy
from draftsman.errors import NotPermitted, UsageError
from draftsman_tui.dashboard.actions import navigation
from draftsman_tui.dashboard.commands.admin_commands import ADMIN_COMMANDS
from draftsman_tui.dashboard.commands.command import JOB, DashboardCommand
from draftsman_tui.dashboard.commands.job_commands import JOB_COMMANDS
from draftsman_tui.dashboard.commands.job_screen_commands import JOB_SCREEN_COMMANDS
from draftsman_tui.dashboard.commands.table_commands import TABLE_COMMANDS
from draftsman_tui.dashboard.job.job_tabs import JOB_TABS
from draftsman_tui.dashboard.key_map import DefaultKeys, display_key
from draftsman_tui.dashboard.views import VIEWS

if TYPE_CHECKING:
    from draftsman.domain.people.actor import Actor
    from draftsman_tui.dashboard.screens.base import BaseScreen
    from draftsman_tui.dashboard.screens.job import JobScreen

NAMED: Final = re.compile(r"d-[0-9]+(/[0-9]+)?", re.IGNORECASE)
"""Name of a job or a question."""


def _view(nth: int, name: str) -> DashboardCommand:
    async def run(screen: BaseScreen, text: str) -> None:
        await navigation.view(screen, name, text)

    return DashboardCommand(name, VIEWS[name].help, run, str(nth), "Tables", takes="FILTER")


def _tab(nth: int, name: str) -> DashboardCommand:
    async def run(screen: JobScreen, text: str) -> None:
        screen.show_tab(name)

    return DashboardCommand(f"job-{name}", JOB_TABS[name].help, run, str(nth % 10), "Job", JOB)


COMMANDS: Final[tuple[DashboardCommand, ...]] = (
    *(_tab(nth, name) for nth, name in enumerate(JOB_TABS, 1)),
    *(_view(nth, name) for nth, name in enumerate(VIEWS, 1)),
    *JOB_COMMANDS,
    *JOB_SCREEN_COMMANDS,
    *TABLE_COMMANDS,
    *ADMIN_COMMANDS,
)
BY_NAME: Final = {command.name: command for command in COMMANDS}


def bindings(keys: Mapping[str, str] | None = None) -> Sequence[Binding]:
    """Return the key bindings, with `keys` overriding defaults; the id is the command's name."""
    mapped = {command.name: command.keys for command in COMMANDS} | dict(keys or {})
    return [
        Binding(
            mapped[command.name], f"command('{command.name}')", command.name, bool(command.footer),
            tooltip=command.help, id=command.name,
        )
        for command in COMMANDS
        if mapped[command.name]
    ]  # fmt: skip


def refusal(
    command: DashboardCommand, policy: Policy, actor: Actor, invoker: str | None, *, read_only: bool
) -> str | None:
    """Return why the user may not run the command, or None."""
    if read_only and (command.needs or command.writes):
        return f"{command.name}: this dashboard is read-only"
    if command.needs is None:
        return None
    try:
        policy.check(actor, command.needs, invoker=actor.voter if invoker is None else invoker)
    except NotPermitted as error:
        return str(error)
    return None


def parse_command(text: str, views: Iterable[str] = ()) -> tuple[DashboardCommand, str]:
    """Parse a command line into a command and its arguments; raises UsageError.

    The name of a saved view opens the view; the name of a job or a question opens it.
    """
    if NAMED.fullmatch(text.strip()):
        return BY_NAME["job"], text.strip()
    name, _, rest = text.strip().partition(" ")
    names = [*BY_NAME, *(view for view in views if view not in BY_NAME)]
    matches = (
        [name] if name in names else [other for other in names if name and other.startswith(name)]
    )
    if len(matches) == 1:
        return (
            (BY_NAME[matches[0]], rest.strip())
            if matches[0] in BY_NAME
            else (BY_NAME["views"], matches[0])
        )
    if matches:
        raise UsageError(f"ambiguous command {name!r}: {', '.join(matches)}")
    raise UsageError(f"unknown command: {name}; press ? for a list")


def default_keys() -> dict[str, DefaultKeys]:
    """Return the default keys of every command."""
    return {command.name: DefaultKeys(command.keys.split(","), command.on) for command in COMMANDS}


def help_groups(screen: BaseScreen) -> dict[str, list[tuple[str, str, str]]]:
    """Return (keys, name and arguments, help) by group; unavailable commands come last."""
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for command in sorted(COMMANDS, key=lambda command: not screen.is_here(command)):
        keys = " ".join(display_key(key) for key in screen.keys_of(command))
        groups.setdefault(command.group if screen.is_here(command) else "Other views", []).append(
            (
                keys,
                f":{command.name} {command.takes}".strip(),
                f"{command.help}{' (not permitted)' if screen.refusal(command) else ''}",
            )
        )
    return groups
