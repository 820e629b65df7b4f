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

from draftsman.domain.policy import Policy, Verb
from draftsman.errors import NotPermitted, UsageError
from draftsman_tui.dashboard import (
    answering,
    asking,
    browsing,
    looks,
    moves,
    retrying,
    sending,
    upkeep,
    verbs,
)
from draftsman_tui.dashboard.job import acts
from draftsman_tui.dashboard.job.parts import PARTS
from draftsman_tui.dashboard.keys import Own, shown
from draftsman_tui.dashboard.views import VIEWS

if TYPE_CHECKING:
    from draftsman.domain.actor import Actor
    from draftsman_tui.dashboard.screens.desk import Desk
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
class Command:
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


def _view(nth: int, name: str) -> Command:
    async def run(desk: Desk, text: str) -> None:
        await moves.view(desk, name, text)

    return Command(name, VIEWS[name].help, run, str(nth), "Tables", takes="FILTER")


def _part(nth: int, name: str) -> Command:
    async def run(screen: JobScreen, text: str) -> None:
        screen.show_part(name)

    return Command(f"job-{name}", PARTS[name].help, run, str(nth % 10), "A job", JOB)


COMMANDS: Final[tuple[Command, ...]] = (
    *(_part(nth, name) for nth, name in enumerate(PARTS, 1)),
    *(_view(nth, name) for nth, name in enumerate(VIEWS, 1)),
    Command("answer", "Answer a question; decide a gate, with the diff in view.", answering.answer,
            "a", "Questions", ASKING, Verb.ANSWER, footer=True),
    Command("approve", "Approve what a job wants to do, with the diff in view.", answering.approve,
            "y", "Questions", ASKING, Verb.APPROVE),
    Command("deny", "Deny what a job wants to do, with the diff in view.", answering.deny,
            "x", "Questions", ASKING, Verb.APPROVE, takes="REASON"),
    Command("extend", "Give a question more time.", answering.extend,
            "e", "Questions", ASKING, Verb.EXTEND, takes="2h|never"),
    Command("cancel", "End jobs; asks first.", verbs.cancel,
            "c", "Jobs", JOBS - {"dead"}, Verb.CANCEL, takes="REASON", footer=True),
    Command("cancel-force", "End jobs without waiting for their worker; type which.",
            verbs.cancel_force, "ctrl+k", "Jobs", JOBS - {"dead"}, Verb.CANCEL, takes="REASON"),
    Command("retry", "Retry finished jobs from their last checkpoint; asks first.", retrying.retry,
            "r", "Jobs", JOBS, Verb.RETRY, takes="fresh again with-answer", footer=True),
    Command("retry-all", "Run all anew that ended so: what the filter says, or what follows.",
            retrying.retry_all, "", "Jobs", frozenset({"jobs", "dead"}), Verb.RETRY,
            takes="status:failed since:2h"),
    Command("new", "Ask for a job, in a form.", asking.new,
            "n", "Jobs", None, Verb.SUBMIT, takes="fix REPO TEXT", footer=frozenset({"jobs"})),
    Command("copy-job", "Ask for a job like this one, in a form.", asking.copy_job,
            "N", "Jobs", JOBS, Verb.SUBMIT),
    Command("why", "Say what a job waits for.", verbs.why, "w", "Jobs", JOBS, footer=True),
    Command("diff", "Show the changes that a job made.", verbs.diff, "d", "Jobs", JOBS),
    Command("redeliver", "Send dead deliveries again.", sending.redeliver,
            "R", "Deliveries", frozenset({"deliveries"}) | JOB, Verb.REDELIVER, footer=True),
    Command("redeliver-job", "Send all dead deliveries of the job again.", sending.redeliver_job,
            "R", "Deliveries", JOBS - JOB - {"deliveries"}, Verb.REDELIVER),
    Command("redeliver-dead", "Send all dead deliveries again.", sending.redeliver_dead,
            "", "Deliveries", None, Verb.REDELIVER),
    Command("open", "Open the job of a row, or what the cursor is on; a job by its number.",
            moves.open_row, "enter", on=JOBS, takes="D-142"),
    Command("job", "Open a job, from anywhere.", moves.job, group="Jobs", takes="D-142"),
    Command("log", "Follow the log of a job; of one run.", acts.log,
            "l", "A job", JOBS, takes="RUN|all"),
    Command("previous-part", "Go to the part to the left.", acts.previous_part,
            "left,h", "A job", JOB),
    Command("next-part", "Go to the part to the right.", acts.next_part, "right", "A job", JOB),
    Command("follow", "Keep the end of the log or the timeline in view.", acts.follow,
            "f", "A job", JOB),
    Command("find", "Show only what says this.", acts.find, "slash", "A job", JOB, takes="WORDS"),
    Command("previous-job", "Go to the job before in the table.", acts.previous_job,
            "left_square_bracket,K", "A job", JOB),
    Command("next-job", "Go to the next job of the table.", acts.next_job,
            "right_square_bracket,J", "A job", JOB),
    Command("back", "Go back to the table.", acts.back, "escape", "A job", JOB, footer=True),
    Command("copy", "Copy the ids of the chosen rows.", verbs.copy, "ctrl+y,Y"),
    Command("browse", "Open the page of a row in the browser.", browsing.browse, "o",
            takes="ticket|pr|thread"),
    Command("filter", "Show only some rows.", moves.narrow, "slash", on=TABLES,
            takes="FILTER", footer=True),
    Command("clear", "Take the filter and the marks off.", moves.clear, "escape", on=TABLES),
    Command("sort", "Sort by the next column; by one that is named.", moves.sort,
            "s", on=TABLES, takes="COLUMN"),
    Command("reverse", "Sort the other way round.", moves.reverse, "S", on=TABLES),
    Command("mark", "Mark a row for the next command.", moves.mark, "space", on=TABLES),
    Command("mark-range", "Mark from the last mark to here.", moves.mark_range, "ctrl+@,V",
            on=TABLES),
    Command("columns", "Choose the columns and their order; all, or those that are named.",
            looks.columns, "C", on=TABLES, takes="COLUMNS"),
    Command("views", "List the saved views; go to one.", looks.views, "v", "Saved views",
            takes="VIEW"),
    Command("save", "Save this table as it is shown, under a name.", looks.save,
            group="Saved views", on=TABLES, takes="NAME"),
    Command("unsave", "Forget a saved view; asks first.", looks.unsave,
            group="Saved views", takes="VIEW"),
    Command("refresh", "Look again now.", moves.refresh, "ctrl+r"),
    Command("default", "Let this repository be meant where a request names none, or none be.",
            upkeep.default, "", "Upkeep", REPOS, Verb.REPOS),
    Command("map", "Let a label stand for this repository.", upkeep.map_label,
            "", "Upkeep", REPOS, Verb.REPOS, takes="LABEL [//FOLDER]"),
    Command("unmap", "Let a label stand for this repository no more.", upkeep.unmap_label,
            "", "Upkeep", REPOS, Verb.REPOS, takes="LABEL"),
    Command("forget", "Forget this repository, its labels and profiles.", upkeep.forget,
            "", "Upkeep", REPOS, Verb.REPOS),
    Command("unwatch", "Watch this board no more.", upkeep.unwatch,
            "", "Upkeep", frozenset({"boards"}), Verb.BOARDS),
    Command("people", "Show who is who.", upkeep.people, "", "Upkeep"),
    Command("link", "Join an identity of chat to you, by the code it was given.", upkeep.link,
            "", "Upkeep", writes=True, takes="CODE"),
    Command("unlink", "Part an identity of chat from its person.", upkeep.unlink,
            "", "Upkeep", None, Verb.UNLINK, takes="slack:ID"),
    Command("sweep", "Do now what the leader does from time to time.", upkeep.sweep,
            "", "Upkeep", None, Verb.SWEEP, takes="NAME"),
    Command("restore", "Bring an archived month of the trail back.", upkeep.restore,
            "", "Upkeep", None, Verb.RESTORE, takes="FILE"),
    Command("command", "Type a command.", moves.command, "colon", "Everywhere", footer=True),
    Command("theme", "Take the next theme; one that is named.", moves.theme,
            "t", "Everywhere", takes="dark|light|contrast|none"),
    Command("help", "List everything that can be done.", moves.help,
            "question_mark", "Everywhere", footer=True),
    Command("processes", "Show what the processes log that `draftsman up` started.",
            moves.processes, "L", "Everywhere"),
    Command("suspend", "Go back to the shell for a while; fg comes back.", moves.suspend,
            "ctrl+z", "Everywhere"),
    Command("quit", "Leave.", moves.leave, "q,ctrl+q", "Everywhere", footer=True),
)  # fmt: skip
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
    command: Command, policy: Policy, actor: Actor, invoker: str | None, *, read_only: bool
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


def of(text: str, views: Iterable[str] = ()) -> tuple[Command, str]:
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


def own_keys() -> dict[str, Own]:
    """Return the keys of every command as it comes."""
    return {command.name: Own(command.keys.split(","), command.on) for command in COMMANDS}


def helped(desk: Desk) -> dict[str, list[tuple[str, str, str]]]:
    """Return for each group (keys, name and what it takes, help), those of other places last."""
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for one in sorted(COMMANDS, key=lambda one: not desk.is_here(one)):
        keys = " ".join(shown(key) for key in desk.keys_of(one))
        groups.setdefault(one.group if desk.is_here(one) else "Elsewhere", []).append(
            (keys, f":{one.name} {one.takes}".strip(), f"{one.help}{_barred(desk, one)}")
        )
    return groups


def _barred(desk: Desk, command: Command) -> str:
    """Say of a command that this person may not give it."""
    who = desk.rt.policy, desk.actor, desk.invoker
    refused = refusal(command, *who, read_only=desk.read_only)
    return " (not for you)" if refused else ""
