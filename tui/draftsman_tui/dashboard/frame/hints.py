"""Commands that help, as the keys and the lines of the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from draftsman.actions.action import About, Action
from draftsman.errors import CommandHint, Hint, OptionHint
from draftsman_tui.dashboard.command import NAMED
from draftsman_tui.dashboard.key_map import display_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from draftsman_tui.dashboard.command import DashboardCommand

SAME: Final = {"show": "job", "logs": "log", "questions": "inbox"}
"""Commands of the dashboard for those of the command line with another name."""


class CommandScreen(Protocol):
    """A screen, with the commands of the dashboard."""

    @property
    def commands(self) -> Iterable[DashboardCommand]:
        """All commands."""

    def is_here(self, command: DashboardCommand) -> bool:
        """Return whether a command applies to this screen."""

    def keys_of(self, command: DashboardCommand) -> Sequence[str]:
        """Return the keys of a command on this screen."""


def hint_text(screen: CommandScreen, hint: Hint, job: str = "") -> str:
    """Return what to press or to enter, or the command line where only a shell has the command.

    `job` is the name of the job that commands are about: another one is opened by its name.
    """
    if isinstance(hint, OptionHint):
        return f"enter :retry {hint.name}"
    name = next((word for word in hint.arguments.split() if NAMED.fullmatch(word)), "")
    if name and job and name.partition("/")[0].casefold() != job.casefold():
        return f"enter :{name}"
    command = _command_of(screen, hint)
    if command is None:
        return f"draftsman {hint.line}"
    if not screen.is_here(command):
        return f"enter :{min(command.on or ())}"
    if keys := screen.keys_of(command):
        return f"press {display_key(keys[0])}"
    return f"enter :{command.name}"


def see_text(screen: CommandScreen, hint: Hint, job: str = "") -> str:
    """Return the hint of an error as a clause, with what its key shows: `press 1 for jobs`."""
    text = hint_text(screen, hint, job)
    if hint.lead != "see":
        return f"{hint.lead}: {text}" if hint.lead else text
    command = _command_of(screen, hint) if isinstance(hint, CommandHint) else None
    return f"{text} for {command.name}" if command and text.startswith("press ") else text


def _command_of(screen: CommandScreen, hint: CommandHint) -> DashboardCommand | None:
    """Return the command of the dashboard that does the same, if there is one."""
    for command in screen.commands:
        if any(hint.name in _names(action) for action in command.actions[:1]):
            return command
    name = SAME.get(hint.name, hint.name.removesuffix(" list"))
    return next((command for command in screen.commands if command.name == name), None)


def _names(action: Action[Any, ..., Any]) -> Iterator[str]:
    """Yield the name of the command of an action: `retry`, `queues resume`."""
    yield f"{action.about}s {action.name}"
    if action.about in (About.JOB, About.QUESTION):
        yield action.name
