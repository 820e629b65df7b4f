"""Table of the dashboard's commands.

Key bindings (remapped by command name), the footer, the command line and its completion, the
palette and the help are all generated from it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from textual.binding import Binding

from draftsman.domain.people.policy import Policy, Verb
from draftsman.errors import NotPermitted, UsageError
from draftsman_tui.dashboard.actions import (
    admin_actions,
    browser_actions,
    delivery_actions,
    job_actions,
    navigation,
    question_actions,
    retry_actions,
    submit_actions,
    tab_actions,
    view_actions,
)
from draftsman_tui.dashboard.job.job_tabs import JOB_TABS
from draftsman_tui.dashboard.key_map import DefaultKeys, display_key
from draftsman_tui.dashboard.views import VIEWS

if TYPE_CHECKING:
    from draftsman.domain.people.actor import Actor
    from draftsman_tui.dashboard.screens.base import BaseScreen
    from draftsman_tui.dashboard.screens.job import JobScreen

Run = Callable[[Any, str], Awaitable[None]]
"""Takes the screen that the command applies to, and the arguments."""
TABLES: Final = frozenset(VIEWS)
JOB: Final = frozenset({"job"})
"""The screen of one job."""
JOBS: Final = frozenset({"jobs", "dead", "inbox", "runs", "deliveries", "events"}) | JOB
"""Views whose rows refer to a job, and the job screen."""
QUESTION_VIEWS: Final = frozenset({"jobs", "inbox"}) | JOB
"""Views whose selection may have an open question."""
REPOS: Final = frozenset({"repos"})
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
    DashboardCommand(
        "answer",
        "Answer a question, or decide an approval with its diff.",
        question_actions.answer,
        "a",
        "Questions",
        QUESTION_VIEWS,
        Verb.ANSWER,
        footer=True,
    ),
    DashboardCommand(
        "approve",
        "Approve an action, with its diff.",
        question_actions.approve,
        "y",
        "Questions",
        QUESTION_VIEWS,
        Verb.APPROVE,
    ),
    DashboardCommand(
        "deny",
        "Deny an action, with its diff.",
        question_actions.deny,
        "x",
        "Questions",
        QUESTION_VIEWS,
        Verb.APPROVE,
        takes="REASON",
    ),
    DashboardCommand(
        "extend",
        "Extend the deadline of a question.",
        question_actions.extend,
        "e",
        "Questions",
        QUESTION_VIEWS,
        Verb.EXTEND,
        takes="2h|never",
    ),
    DashboardCommand(
        "cancel",
        "Cancel jobs, after confirmation.",
        job_actions.cancel,
        "c",
        "Jobs",
        JOBS - {"dead"},
        Verb.CANCEL,
        takes="REASON",
        footer=True,
    ),
    DashboardCommand(
        "cancel-force",
        "Cancel jobs without waiting for their worker, after typed confirmation.",
        job_actions.cancel_force,
        "ctrl+k",
        "Jobs",
        JOBS - {"dead"},
        Verb.CANCEL,
        takes="REASON",
    ),
    DashboardCommand(
        "retry",
        "Retry finished jobs from their last checkpoint, after confirmation.",
        retry_actions.retry,
        "r",
        "Jobs",
        JOBS,
        Verb.RETRY,
        takes="fresh again with-answer",
        footer=True,
    ),
    DashboardCommand(
        "retry-all",
        "Retry every finished job that matches the filter.",
        retry_actions.retry_all,
        "",
        "Jobs",
        frozenset({"jobs", "dead"}),
        Verb.RETRY,
        takes="status:failed since:2h",
    ),
    DashboardCommand(
        "new",
        "Submit a job.",
        submit_actions.new,
        "n",
        "Jobs",
        None,
        Verb.SUBMIT,
        takes="fix REPO TEXT",
        footer=frozenset({"jobs"}),
    ),
    DashboardCommand(
        "copy-job",
        "Submit a copy of the job.",
        submit_actions.copy_job,
        "N",
        "Jobs",
        JOBS,
        Verb.SUBMIT,
    ),
    DashboardCommand(
        "why", "Show why a job waits.", job_actions.why, "w", "Jobs", JOBS, footer=True
    ),
    DashboardCommand("diff", "Show the diff of a job.", job_actions.diff, "d", "Jobs", JOBS),
    DashboardCommand(
        "redeliver",
        "Resend dead deliveries.",
        delivery_actions.redeliver,
        "R",
        "Deliveries",
        frozenset({"deliveries"}) | JOB,
        Verb.REDELIVER,
        footer=True,
    ),
    DashboardCommand(
        "redeliver-job",
        "Resend all dead deliveries of the job.",
        delivery_actions.redeliver_job,
        "R",
        "Deliveries",
        JOBS - JOB - {"deliveries"},
        Verb.REDELIVER,
    ),
    DashboardCommand(
        "redeliver-dead",
        "Resend all dead deliveries.",
        delivery_actions.redeliver_dead,
        "",
        "Deliveries",
        None,
        Verb.REDELIVER,
    ),
    DashboardCommand(
        "open",
        "Open the job or item under the cursor, or the named job.",
        navigation.open_row,
        "enter",
        on=JOBS,
        takes="D-142",
    ),
    DashboardCommand("job", "Open a job.", navigation.job, group="Jobs", takes="D-142"),
    DashboardCommand(
        "log",
        "Follow the log of a job or a run.",
        tab_actions.log,
        "l",
        "Job",
        JOBS,
        takes="RUN|all",
    ),
    DashboardCommand(
        "previous-part",
        "Go to the previous tab.",
        tab_actions.previous_tab,
        "left,h",
        "Job",
        JOB,
    ),
    DashboardCommand("next-part", "Go to the next tab.", tab_actions.next_tab, "right", "Job", JOB),
    DashboardCommand(
        "follow",
        "Keep the end of the log or the timeline in view.",
        tab_actions.follow,
        "f",
        "Job",
        JOB,
    ),
    DashboardCommand(
        "find", "Search the tab.", tab_actions.find, "slash", "Job", JOB, takes="TEXT"
    ),
    DashboardCommand(
        "previous-job",
        "Go to the previous job in the table.",
        tab_actions.previous_job,
        "left_square_bracket,K",
        "Job",
        JOB,
    ),
    DashboardCommand(
        "next-job",
        "Go to the next job in the table.",
        tab_actions.next_job,
        "right_square_bracket,J",
        "Job",
        JOB,
    ),
    DashboardCommand(
        "back", "Go back to the table.", tab_actions.back, "escape", "Job", JOB, footer=True
    ),
    DashboardCommand("copy", "Copy the ids of the selected rows.", job_actions.copy, "ctrl+y,Y"),
    DashboardCommand(
        "browse",
        "Open the web page of a row in the browser.",
        browser_actions.browse,
        "o",
        takes="ticket|pr|thread",
    ),
    DashboardCommand(
        "filter",
        "Filter the rows.",
        navigation.apply_filter,
        "slash",
        on=TABLES,
        takes="FILTER",
        footer=True,
    ),
    DashboardCommand(
        "clear", "Clear the marks or the filter.", navigation.clear, "escape", on=TABLES
    ),
    DashboardCommand(
        "sort",
        "Sort by the next column, or by the named column.",
        navigation.sort,
        "s",
        on=TABLES,
        takes="COLUMN",
    ),
    DashboardCommand("reverse", "Reverse the sort order.", navigation.reverse, "S", on=TABLES),
    DashboardCommand(
        "mark", "Mark a row for the next command.", navigation.mark, "space", on=TABLES
    ),
    DashboardCommand(
        "mark-range",
        "Mark from the last mark to here.",
        navigation.mark_range,
        "ctrl+@,V",
        on=TABLES,
    ),
    DashboardCommand(
        "columns",
        "Choose the columns and their order.",
        view_actions.columns,
        "C",
        on=TABLES,
        takes="COLUMNS",
    ),
    DashboardCommand(
        "views",
        "List and open the saved views.",
        view_actions.views,
        "v",
        "Saved views",
        takes="VIEW",
    ),
    DashboardCommand(
        "save",
        "Save the table's filter, order and columns as a view.",
        view_actions.save,
        group="Saved views",
        on=TABLES,
        takes="NAME",
    ),
    DashboardCommand(
        "unsave",
        "Delete a saved view, after confirmation.",
        view_actions.unsave,
        group="Saved views",
        takes="VIEW",
    ),
    DashboardCommand("refresh", "Reload the data.", navigation.refresh, "ctrl+r"),
    DashboardCommand(
        "default",
        "Set or clear the default repository.",
        admin_actions.set_default_repo,
        "",
        "Administration",
        REPOS,
        Verb.REPOS,
    ),
    DashboardCommand(
        "map",
        "Map a label to the repository.",
        admin_actions.map_label,
        "",
        "Administration",
        REPOS,
        Verb.REPOS,
        takes="LABEL [//FOLDER]",
    ),
    DashboardCommand(
        "unmap",
        "Remove a label mapping of the repository.",
        admin_actions.unmap_label,
        "",
        "Administration",
        REPOS,
        Verb.REPOS,
        takes="LABEL",
    ),
    DashboardCommand(
        "forget",
        "Remove the repository, its label mappings and profiles.",
        admin_actions.remove_repo,
        "",
        "Administration",
        REPOS,
        Verb.REPOS,
    ),
    DashboardCommand(
        "unwatch",
        "Stop watching the board.",
        admin_actions.remove_board,
        "",
        "Administration",
        frozenset({"boards"}),
        Verb.BOARDS,
    ),
    DashboardCommand(
        "people",
        "List people, roles and linked chat accounts.",
        admin_actions.people,
        "",
        "Administration",
    ),
    DashboardCommand(
        "link",
        "Link a chat account to you, by its code.",
        admin_actions.link,
        "",
        "Administration",
        writes=True,
        takes="CODE",
    ),
    DashboardCommand(
        "unlink",
        "Unlink a chat account.",
        admin_actions.unlink,
        "",
        "Administration",
        None,
        Verb.UNLINK,
        takes="slack:ID",
    ),
    DashboardCommand(
        "sweep",
        "Run a maintenance sweep now.",
        admin_actions.sweep,
        "",
        "Administration",
        None,
        Verb.SWEEP,
        takes="NAME",
    ),
    DashboardCommand(
        "restore",
        "Restore an archived month of events.",
        admin_actions.restore,
        "",
        "Administration",
        None,
        Verb.RESTORE,
        takes="FILE",
    ),
    DashboardCommand(
        "command", "Type a command.", navigation.command, "colon", "General", footer=True
    ),
    DashboardCommand(
        "theme",
        "Switch to the next theme, or to the named theme.",
        navigation.theme,
        "t",
        "General",
        takes="dark|light|contrast|none",
    ),
    DashboardCommand(
        "help",
        "List all commands.",
        navigation.help,
        "question_mark",
        "General",
        footer=True,
    ),
    DashboardCommand(
        "processes",
        "Show the log of the processes started by `draftsman up`.",
        navigation.processes,
        "L",
        "General",
    ),
    DashboardCommand(
        "suspend",
        "Suspend to the shell; fg resumes.",
        navigation.suspend,
        "ctrl+z",
        "General",
    ),
    DashboardCommand("quit", "Quit.", navigation.leave, "q,ctrl+q", "General", footer=True),
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
                f"{command.help}{_denied_mark(screen, command)}",
            )
        )
    return groups


def _denied_mark(screen: BaseScreen, command: DashboardCommand) -> str:
    denied = refusal(
        command, screen.rt.policy, screen.actor, screen.invoker, read_only=screen.read_only
    )
    return " (not permitted)" if denied else ""
