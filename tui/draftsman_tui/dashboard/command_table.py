"""The one table of what can be done here.

Key bindings (which can be mapped anew by the names), the footer, the `:` line and its completion,
the palette and the help are all made from it.
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
"""Takes the desk, of the kind that has the place, and what was typed behind the name."""
TABLES: Final = frozenset(VIEWS)
JOB: Final = frozenset({"job"})
"""The screen of one job."""
JOBS: Final = frozenset({"jobs", "dead", "inbox", "runs", "deliveries", "events"}) | JOB
"""Tables whose rows are about a job, and the job itself."""
ASKING: Final = frozenset({"jobs", "inbox"}) | JOB
"""Where what is chosen may be about an open question."""
REPOS: Final = frozenset({"repos"})
NAMED: Final = re.compile(r"d-[0-9]+(/[0-9]+)?", re.IGNORECASE)
"""A job or a question, by its name."""


@dataclass(frozen=True, slots=True)
class DashboardCommand:
    """One thing that can be done. `on` are the places that have it; None: all."""

    name: str
    help: str
    run: Run
    keys: str = ""
    group: str = "This table"
    on: frozenset[str] | None = None
    needs: Verb | None = None
    """The right that the services will ask for; with one, it writes."""
    writes: bool = False
    """Whether it writes without asking for a right."""
    takes: str = ""
    """What may follow it on the `:` line."""
    footer: bool | frozenset[str] = False
    """Whether its key is shown at the bottom, or in which places it is: 80 columns have little."""

    def is_shown(self, place: str) -> bool:
        """Return whether its key is shown at the bottom of a place."""
        return self.footer if isinstance(self.footer, bool) else place in self.footer


def _view(nth: int, name: str) -> DashboardCommand:
    async def run(desk: BaseScreen, text: str) -> None:
        await navigation.view(desk, name, text)

    return DashboardCommand(name, VIEWS[name].help, run, str(nth), "Tables", takes="FILTER")


def _part(nth: int, name: str) -> DashboardCommand:
    async def run(screen: JobScreen, text: str) -> None:
        screen.show_part(name)

    return DashboardCommand(f"job-{name}", JOB_TABS[name].help, run, str(nth % 10), "A job", JOB)


COMMANDS: Final[tuple[DashboardCommand, ...]] = (
    *(_part(nth, name) for nth, name in enumerate(JOB_TABS, 1)),
    *(_view(nth, name) for nth, name in enumerate(VIEWS, 1)),
    DashboardCommand(
        "answer",
        "Answer a question; decide a gate, with the diff in view.",
        question_actions.answer,
        "a",
        "Questions",
        ASKING,
        Verb.ANSWER,
        footer=True,
    ),
    DashboardCommand(
        "approve",
        "Approve what a job wants to do, with the diff in view.",
        question_actions.approve,
        "y",
        "Questions",
        ASKING,
        Verb.APPROVE,
    ),
    DashboardCommand(
        "deny",
        "Deny what a job wants to do, with the diff in view.",
        question_actions.deny,
        "x",
        "Questions",
        ASKING,
        Verb.APPROVE,
        takes="REASON",
    ),
    DashboardCommand(
        "extend",
        "Give a question more time.",
        question_actions.extend,
        "e",
        "Questions",
        ASKING,
        Verb.EXTEND,
        takes="2h|never",
    ),
    DashboardCommand(
        "cancel",
        "End jobs; asks first.",
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
        "End jobs without waiting for their worker; type which.",
        job_actions.cancel_force,
        "ctrl+k",
        "Jobs",
        JOBS - {"dead"},
        Verb.CANCEL,
        takes="REASON",
    ),
    DashboardCommand(
        "retry",
        "Retry finished jobs from their last checkpoint; asks first.",
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
        "Run all anew that ended so: what the filter says, or what follows.",
        retry_actions.retry_all,
        "",
        "Jobs",
        frozenset({"jobs", "dead"}),
        Verb.RETRY,
        takes="status:failed since:2h",
    ),
    DashboardCommand(
        "new",
        "Ask for a job, in a form.",
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
        "Ask for a job like this one, in a form.",
        submit_actions.copy_job,
        "N",
        "Jobs",
        JOBS,
        Verb.SUBMIT,
    ),
    DashboardCommand(
        "why", "Say what a job waits for.", job_actions.why, "w", "Jobs", JOBS, footer=True
    ),
    DashboardCommand(
        "diff", "Show the changes that a job made.", job_actions.diff, "d", "Jobs", JOBS
    ),
    DashboardCommand(
        "redeliver",
        "Send dead deliveries again.",
        delivery_actions.redeliver,
        "R",
        "Deliveries",
        frozenset({"deliveries"}) | JOB,
        Verb.REDELIVER,
        footer=True,
    ),
    DashboardCommand(
        "redeliver-job",
        "Send all dead deliveries of the job again.",
        delivery_actions.redeliver_job,
        "R",
        "Deliveries",
        JOBS - JOB - {"deliveries"},
        Verb.REDELIVER,
    ),
    DashboardCommand(
        "redeliver-dead",
        "Send all dead deliveries again.",
        delivery_actions.redeliver_dead,
        "",
        "Deliveries",
        None,
        Verb.REDELIVER,
    ),
    DashboardCommand(
        "open",
        "Open the job of a row, or what the cursor is on; a job by its number.",
        navigation.open_row,
        "enter",
        on=JOBS,
        takes="D-142",
    ),
    DashboardCommand(
        "job", "Open a job, from anywhere.", navigation.job, group="Jobs", takes="D-142"
    ),
    DashboardCommand(
        "log",
        "Follow the log of a job; of one run.",
        tab_actions.log,
        "l",
        "A job",
        JOBS,
        takes="RUN|all",
    ),
    DashboardCommand(
        "previous-part",
        "Go to the part to the left.",
        tab_actions.previous_tab,
        "left,h",
        "A job",
        JOB,
    ),
    DashboardCommand(
        "next-part", "Go to the part to the right.", tab_actions.next_tab, "right", "A job", JOB
    ),
    DashboardCommand(
        "follow",
        "Keep the end of the log or the timeline in view.",
        tab_actions.follow,
        "f",
        "A job",
        JOB,
    ),
    DashboardCommand(
        "find", "Show only what says this.", tab_actions.find, "slash", "A job", JOB, takes="WORDS"
    ),
    DashboardCommand(
        "previous-job",
        "Go to the job before in the table.",
        tab_actions.previous_job,
        "left_square_bracket,K",
        "A job",
        JOB,
    ),
    DashboardCommand(
        "next-job",
        "Go to the next job of the table.",
        tab_actions.next_job,
        "right_square_bracket,J",
        "A job",
        JOB,
    ),
    DashboardCommand(
        "back", "Go back to the table.", tab_actions.back, "escape", "A job", JOB, footer=True
    ),
    DashboardCommand("copy", "Copy the ids of the chosen rows.", job_actions.copy, "ctrl+y,Y"),
    DashboardCommand(
        "browse",
        "Open the page of a row in the browser.",
        browser_actions.browse,
        "o",
        takes="ticket|pr|thread",
    ),
    DashboardCommand(
        "filter",
        "Show only some rows.",
        navigation.narrow,
        "slash",
        on=TABLES,
        takes="FILTER",
        footer=True,
    ),
    DashboardCommand(
        "clear", "Take the filter and the marks off.", navigation.clear, "escape", on=TABLES
    ),
    DashboardCommand(
        "sort",
        "Sort by the next column; by one that is named.",
        navigation.sort,
        "s",
        on=TABLES,
        takes="COLUMN",
    ),
    DashboardCommand("reverse", "Sort the other way round.", navigation.reverse, "S", on=TABLES),
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
        "Choose the columns and their order; all, or those that are named.",
        view_actions.columns,
        "C",
        on=TABLES,
        takes="COLUMNS",
    ),
    DashboardCommand(
        "views",
        "List the saved views; go to one.",
        view_actions.views,
        "v",
        "Saved views",
        takes="VIEW",
    ),
    DashboardCommand(
        "save",
        "Save this table as it is shown, under a name.",
        view_actions.save,
        group="Saved views",
        on=TABLES,
        takes="NAME",
    ),
    DashboardCommand(
        "unsave",
        "Forget a saved view; asks first.",
        view_actions.unsave,
        group="Saved views",
        takes="VIEW",
    ),
    DashboardCommand("refresh", "Look again now.", navigation.refresh, "ctrl+r"),
    DashboardCommand(
        "default",
        "Let this repository be meant where a request names none, or none be.",
        admin_actions.set_default_repo,
        "",
        "Upkeep",
        REPOS,
        Verb.REPOS,
    ),
    DashboardCommand(
        "map",
        "Let a label stand for this repository.",
        admin_actions.map_label,
        "",
        "Upkeep",
        REPOS,
        Verb.REPOS,
        takes="LABEL [//FOLDER]",
    ),
    DashboardCommand(
        "unmap",
        "Let a label stand for this repository no more.",
        admin_actions.unmap_label,
        "",
        "Upkeep",
        REPOS,
        Verb.REPOS,
        takes="LABEL",
    ),
    DashboardCommand(
        "forget",
        "Forget this repository, its labels and profiles.",
        admin_actions.remove_repo,
        "",
        "Upkeep",
        REPOS,
        Verb.REPOS,
    ),
    DashboardCommand(
        "unwatch",
        "Watch this board no more.",
        admin_actions.remove_board,
        "",
        "Upkeep",
        frozenset({"boards"}),
        Verb.BOARDS,
    ),
    DashboardCommand("people", "Show who is who.", admin_actions.people, "", "Upkeep"),
    DashboardCommand(
        "link",
        "Join an identity of chat to you, by the code it was given.",
        admin_actions.link,
        "",
        "Upkeep",
        writes=True,
        takes="CODE",
    ),
    DashboardCommand(
        "unlink",
        "Part an identity of chat from its person.",
        admin_actions.unlink,
        "",
        "Upkeep",
        None,
        Verb.UNLINK,
        takes="slack:ID",
    ),
    DashboardCommand(
        "sweep",
        "Do now what the leader does from time to time.",
        admin_actions.sweep,
        "",
        "Upkeep",
        None,
        Verb.SWEEP,
        takes="NAME",
    ),
    DashboardCommand(
        "restore",
        "Bring an archived month of the trail back.",
        admin_actions.restore,
        "",
        "Upkeep",
        None,
        Verb.RESTORE,
        takes="FILE",
    ),
    DashboardCommand(
        "command", "Type a command.", navigation.command, "colon", "Everywhere", footer=True
    ),
    DashboardCommand(
        "theme",
        "Take the next theme; one that is named.",
        navigation.theme,
        "t",
        "Everywhere",
        takes="dark|light|contrast|none",
    ),
    DashboardCommand(
        "help",
        "List everything that can be done.",
        navigation.help,
        "question_mark",
        "Everywhere",
        footer=True,
    ),
    DashboardCommand(
        "processes",
        "Show what the processes log that `draftsman up` started.",
        navigation.processes,
        "L",
        "Everywhere",
    ),
    DashboardCommand(
        "suspend",
        "Go back to the shell for a while; fg comes back.",
        navigation.suspend,
        "ctrl+z",
        "Everywhere",
    ),
    DashboardCommand("quit", "Leave.", navigation.leave, "q,ctrl+q", "Everywhere", footer=True),
)
BY_NAME: Final = {command.name: command for command in COMMANDS}


def bindings(keys: Mapping[str, str] | None = None) -> Sequence[Binding]:
    """Return the key bindings, `keys` in place of a command's own; each has its name as id."""
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
    """Return why somebody may not do this, as far as can be told before asking core."""
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
    """Return the command that a `:` line means, and what follows it; raises UsageError.

    The name of a saved view means to go there, that of a job or a question to open it.
    """
    if NAMED.fullmatch(text.strip()):
        return BY_NAME["job"], text.strip()
    name, _, rest = text.strip().partition(" ")
    known = [*BY_NAME, *(view for view in views if view not in BY_NAME)]
    found = [name] if name in known else [one for one in known if name and one.startswith(name)]
    if len(found) == 1:
        return (
            (BY_NAME[found[0]], rest.strip())
            if found[0] in BY_NAME
            else (BY_NAME["views"], found[0])
        )
    if found:
        raise UsageError(f"{name!r} may be several: {', '.join(found)}")
    raise UsageError(f"there is no command and no view {name!r}; ? lists them all")


def default_keys() -> dict[str, DefaultKeys]:
    """Return the keys of every command as it comes."""
    return {command.name: DefaultKeys(command.keys.split(","), command.on) for command in COMMANDS}


def help_groups(desk: BaseScreen) -> dict[str, list[tuple[str, str, str]]]:
    """Return for each group (keys, name and what it takes, help), those of other places last."""
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for one in sorted(COMMANDS, key=lambda one: not desk.is_here(one)):
        keys = " ".join(display_key(key) for key in desk.keys_of(one))
        groups.setdefault(one.group if desk.is_here(one) else "Elsewhere", []).append(
            (keys, f":{one.name} {one.takes}".strip(), f"{one.help}{_barred(desk, one)}")
        )
    return groups


def _barred(desk: BaseScreen, command: DashboardCommand) -> str:
    """Say of a command that this person may not give it."""
    who = desk.rt.policy, desk.actor, desk.invoker
    refused = refusal(command, *who, read_only=desk.read_only)
    return " (not for you)" if refused else ""
