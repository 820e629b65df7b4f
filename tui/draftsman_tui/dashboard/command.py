"""Dashboard commands: their definition, and lookup by name, key and permission.

The commands themselves are in command_table. Everything below it gets them from the session.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from textual.binding import Binding

from draftsman.errors import NotPermitted, UsageError
from draftsman.people.policy import Policy, Verb
from draftsman_tui.dashboard.key_map import DefaultKeys
from draftsman_tui.dashboard.views import VIEWS

if TYPE_CHECKING:
    from draftsman.people.actor import Actor

Run = Callable[[Any, str], Awaitable[None]]
"""Takes the screen that the command applies to, and the arguments."""
TABLES: Final = frozenset(VIEWS)
JOB: Final = frozenset({"job"})
"""The screen of one job."""
JOBS: Final = frozenset({"jobs", "dead", "inbox", "runs", "deliveries", "events"}) | JOB
"""Views whose rows refer to a job, and the job screen."""
QUESTION_VIEWS: Final = frozenset({"jobs", "inbox"}) | JOB
"""Views whose selection may have an open question."""
ORDERED: Final = frozenset({"jobs"}) | JOB
"""Views whose selection may have queued jobs."""
GROUPED: Final = frozenset({"jobs", "inbox"})
"""Views whose rows can be grouped."""
GROUPS: Final = frozenset({"groups"})
REPOS: Final = frozenset({"repos"})
QUEUES: Final = frozenset({"queues"})
RULES: Final = frozenset({"rules"})
OPENING: Final = frozenset({"groups", "costs", "budgets", "figures"})
"""Views whose rows open another table, or a job."""
TEMPLATES: Final = frozenset({"templates"})
SCHEDULES: Final = frozenset({"schedules"})
NAMED: Final = re.compile(r"d-[0-9]+(/[0-9]+)?", re.IGNORECASE)
"""Name of a job or a question."""


@dataclass(frozen=True, slots=True)
class DashboardCommand:
    """A command. `on` has the names of the views it applies to; None: all."""

    name: str
    help: str
    run: Run
    keys: str = ""
    group: str = "This table"
    on: frozenset[str] | None = None
    needs: Verb | None = None
    """The permission that the service checks; a command with one writes."""
    writes: bool = False
    """Whether it writes without a permission check."""
    takes: str = ""
    """Its arguments."""
    footer: bool | frozenset[str] = False
    """Whether, or in which views, the key bar shows its key."""

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


class CommandSet:
    """Commands in the order of the palette and the help."""

    def __init__(self, commands: Iterable[DashboardCommand]) -> None:
        self._by_name = {command.name: command for command in commands}

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
        """Return the key bindings, with `keys` overriding defaults; their ids are the names."""
        mapped = {command.name: command.keys for command in self} | dict(keys)
        return [
            Binding(
                mapped[command.name], f"command('{command.name}')", command.name,
                bool(command.footer), tooltip=command.help, id=command.name,
            )
            for command in self
            if mapped[command.name]
        ]  # fmt: skip

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
            raise UsageError(f"unknown command: {name}; press ? for a list")
        match = matches[0]
        return (self[match], arguments.strip()) if match in self else (self["views"], match)
