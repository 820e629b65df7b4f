"""Dashboard commands: their declaration, and lookup by name, key and permission.

A command is declared where its function is; command_table has all of them. Everything below it gets
them from the session.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from textual.binding import Binding

from draftsman.actions.action import About, Action
from draftsman.errors import NotPermitted, UsageError
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman_tui.common.synonyms import near_names
from draftsman_tui.dashboard.key_map import DefaultKeys
from draftsman_tui.dashboard.tables.resource import Resource
from draftsman_tui.dashboard.views import VIEWS

Run = Callable[[Any, str], Awaitable[None]]
"""Takes the screen that the command applies to, and the arguments."""
TABLES: Final = frozenset(VIEWS)
JOB: Final = frozenset({"job"})
"""The screen of one job."""


def _tables(condition: Callable[[Resource[Any]], object]) -> frozenset[str]:
    return frozenset(name for name, view in VIEWS.items() if condition(view))


JOBS: Final = JOB | _tables(lambda view: view.has_jobs)
"""Views whose rows refer to a job, and the job screen."""
QUESTION_VIEWS: Final = JOB | _tables(lambda view: view.has_questions)
"""Views whose selection may have an open question."""
ORDERED: Final = JOB | _tables(lambda view: view.has_queued_jobs)
"""Views whose selection may have queued jobs."""
GROUPED: Final = _tables(lambda view: len(view.groups) > 1)
"""Views whose rows can be grouped in several ways."""
OPENING: Final = _tables(lambda view: type(view).table is not Resource.table)
"""Views whose rows open another table, or a job."""
NAMED: Final = re.compile(r"d-[0-9]+(/[0-9]+)?", re.IGNORECASE)
"""Name of a job or a question."""


class CommandGroup(StrEnum):
    """Group of commands in the help and the palette, in its order."""

    JOB = "Job"
    TABLES = "Tables"
    QUESTIONS = "Questions"
    JOBS = "Jobs"
    DELIVERIES = "Deliveries"
    THIS_TABLE = "This table"
    SAVED_VIEWS = "Saved views"
    SCHEDULES = "Schedules"
    TEMPLATES = "Templates"
    GROUPS = "Groups"
    ADMINISTRATION = "Administration"
    OWN = "Own commands"
    GENERAL = "General"


@dataclass(frozen=True, slots=True)
class DashboardCommand:
    """A command. `on` has the names of the views it applies to; None: all."""

    name: str
    help: str
    run: Run
    group: CommandGroup
    keys: str = ""
    on: frozenset[str] | None = None
    needs: Verb | None = None
    """The permission that the service checks; a command with one writes."""
    writes: bool = False
    """Whether it writes without a permission check."""
    takes: str = ""
    """Its arguments."""
    footer: bool | frozenset[str] = False
    """Whether, or in which views, the key bar shows its key."""
    actions: tuple[Action[Any, ..., Any], ...] = ()
    """The actions that it takes, of which the first has its permission and arguments."""
    takes_names: bool = False
    """Whether names of jobs or questions before its arguments replace the selected rows."""

    @property
    def is_about_questions(self) -> bool:
        """Whether the names may be those of questions."""
        return any(action.about is About.QUESTION for action in self.actions)

    def check_arguments(self, text: str) -> None:
        """Raise UsageError for invalid arguments of its action, if it takes these."""
        for action in self.actions[:1]:
            if text and self.takes == action.takes.usage:
                action.takes.parse(text)

    @property
    def changes_rows(self) -> bool:
        """Whether it changes the selected rows, or those that it names."""
        return self.on is not None and (self.needs is not None or self.writes)

    def is_shown(self, view_name: str) -> bool:
        """Return whether the key bar shows it in a view."""
        return self.footer if isinstance(self.footer, bool) else view_name in self.footer

    def refusal(
        self, policy: Policy, actor: Actor, invokers: Collection[str], *, read_only: bool
    ) -> str | None:
        """Return why the user may not run it on jobs of these invokers, or None.

        Without invokers the jobs count as those of the user.
        """
        if read_only and (self.needs or self.writes):
            return f"{self.name}: this dashboard is read-only"
        if self.needs is None:
            return None
        try:
            for invoker in invokers or (actor.voter,):
                policy.check(actor, self.needs, invoker=invoker)
        except NotPermitted as error:
            return str(error)
        return None


DECLARED: Final[list[DashboardCommand]] = []
"""Commands of the modules that are imported."""
Function = TypeVar("Function", bound=Run)


def dashboard_command(
    name: str,
    group: CommandGroup,
    *,
    does: Action[Any, ..., Any] | tuple[Action[Any, ..., Any], ...] = (),
    keys: str = "",
    on: AbstractSet[str] | None = None,
    needs: Verb | None = None,
    writes: bool = False,
    takes: str | None = None,
    footer: bool | AbstractSet[str] = False,
    takes_names: bool = False,
) -> Callable[[Function], Function]:
    """Declare a function as a command, whose help is the first line of the docstring.

    The parameters are the fields of `DashboardCommand`; the help, the permission and the arguments
    are by default those of the first action that it `does`. One about a job or a question takes
    names if the screen of a job has it.
    """
    actions = does if isinstance(does, tuple) else (does,)
    first = actions[0] if actions else None

    def declare(function: Function) -> Function:
        help = (inspect.getdoc(function) or "").partition("\n")[0]
        command = DashboardCommand(
            name=name,
            help=help or (first.help if first is not None else ""),
            run=function,
            group=group,
            keys=keys,
            on=None if on is None else frozenset(on),
            needs=first.right if first is not None else needs,
            writes=writes,
            takes=(first.takes.usage if first is not None else "") if takes is None else takes,
            actions=actions,
            takes_names=takes_names or _is_about_rows(first, on),
            footer=footer if isinstance(footer, bool) else frozenset(footer),
        )
        DECLARED.append(command)
        return function

    return declare


def _is_about_rows(first: Action[Any, ..., Any] | None, on: AbstractSet[str] | None) -> bool:
    return first is not None and first.about in (About.JOB, About.QUESTION) and (on or set()) >= JOB


class CommandSet:
    """Commands in the order of the palette and the help: by group."""

    def __init__(self, commands: Iterable[DashboardCommand]) -> None:
        groups = list(CommandGroup)
        ordered = sorted(commands, key=lambda command: groups.index(command.group))
        self._by_name = {command.name: command for command in ordered}

    def __iter__(self) -> Iterator[DashboardCommand]:
        return iter(self._by_name.values())

    def __getitem__(self, name: str) -> DashboardCommand:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    @property
    def names(self) -> Sequence[str]:
        """Names of the commands."""
        return tuple(self._by_name)

    def bindings(self, keys: Mapping[str, str]) -> Sequence[Binding]:
        """Return the key bindings, with `keys` overriding defaults; their ids are the names.

        Of the commands of a key, those that `keys` maps are first, then those of the fewest views.
        """
        mapped = {command.name: command.keys for command in self} | dict(keys)

        def rank(command: DashboardCommand) -> tuple[bool, int]:
            return command.name not in keys, len(TABLES | JOB if command.on is None else command.on)

        return [
            Binding(
                mapped[command.name],
                f"command('{command.name}')",
                command.name,
                show=bool(command.footer),
                tooltip=command.help,
                id=command.name,
            )
            for command in sorted(self, key=rank)
            if mapped[command.name]
        ]

    def default_keys(self) -> dict[str, DefaultKeys]:
        """Return the default keys of every command."""
        return {command.name: DefaultKeys(command.keys.split(","), command.on) for command in self}

    def parse(self, text: str, views: Iterable[str] = ()) -> tuple[DashboardCommand, str]:
        """Parse a command line into a command and its arguments; raises UsageError.

        The name of a saved view opens the view; the name of a job or a question opens it. A prefix
        of several names is that of a table, which changes nothing; `:j` opens the jobs.
        """
        if NAMED.fullmatch(text.strip()):
            return self["job"], text.strip()
        name, _, arguments = text.strip().partition(" ")
        names = [*self.names, *(view for view in views if view not in self)]
        matches = [candidate for candidate in names if name and candidate.startswith(name)]
        if name in names:
            matches = [name]
        elif tables := [match for match in matches if match in VIEWS]:
            matches = tables[:1]
        if len(matches) > 1:
            raise UsageError(f"ambiguous command {name!r}: {', '.join(matches)}")
        if not matches:
            near = near_names(name, names)
            hint = f"did you mean {' or '.join(near)}?" if near else "press ? for a list"
            raise UsageError(f"unknown command: {name}; {hint}")
        match = matches[0]
        return (self[match], arguments.strip()) if match in self else (self["views"], match)
