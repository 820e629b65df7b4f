"""Job commands: cancel, pause, message to the agent, wait reason, diff and copy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from draftsman.actions import changes, jobs
from draftsman.actions.action import listed
from draftsman.actions.jobs import Selection, select
from draftsman.durations import parse_since
from draftsman.entities.filter_values import unknown_value
from draftsman.errors import Refused, UsageError
from draftsman.ids import job_name
from draftsman.jobs.job import TERMINAL, Status
from draftsman.jobs.job_summary import settled_lines
from draftsman.jobs.status_display import display_of
from draftsman_tui.common.job_pages import is_web_url, pages_of
from draftsman_tui.dashboard.command import JOBS, CommandGroup, dashboard_command
from draftsman_tui.dashboard.dialogs.simple_dialogs import (
    ChoiceDialog,
    PromptDialog,
    TextDialog,
    TypedConfirmDialog,
)
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.frame.perform import (
    act,
    asked,
    call_of,
    confirmed,
    job_command,
    perform_each,
)
from draftsman_tui.dashboard.jobs.view import statuses
from draftsman_tui.dashboard.tables.filter import Filter
from draftsman_tui.dashboard.tables.screen import MainScreen
from draftsman_tui.terminal.results import result_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draftsman.actions.action import Action
    from draftsman_tui.dashboard.frame.base_screen import BaseScreen
    from draftsman_tui.dashboard.tables.screen import MainScreen


LIVE: Final = JOBS - {"dead"}
job_command("cancel", jobs.cancel, keys="c", on=LIVE, footer=True)
job_command("dismiss", jobs.dismiss, keys="X", on=JOBS, footer={"jobs", "dead", "job"})
job_command("undismiss", jobs.undismiss, on=JOBS)
job_command("pause-job", jobs.pause, keys="z", on=LIVE)
job_command("resume-job", jobs.resume, keys="Z", on=LIVE)


@dashboard_command("cancel-force", CommandGroup.JOBS, does=jobs.cancel, keys="ctrl+k", on=LIVE)
async def cancel_force(screen: BaseScreen, text: str) -> None:
    """Cancel jobs without waiting for their worker, after typed confirmation."""
    call = call_of(screen, jobs.cancel)
    selection = await select(screen.rt, jobs.cancel, screen.jobs())
    numbers = selection.numbers
    question = f"{selection.question.removesuffix('?')} without waiting for the worker?"
    note = selection.note("Later writes of the run are rejected; external effects stay.")
    word = job_name(numbers[0]) if len(numbers) == 1 else f"cancel {len(numbers)}"
    if await screen.ask(TypedConfirmDialog(question, note, word)):
        await perform_each(
            screen, jobs.cancel, numbers, lambda job: jobs.cancel(call, job, text, force=True)
        )


@dashboard_command("why", CommandGroup.JOBS, keys="w", on=JOBS, footer=True, takes_names=True)
async def why(screen: BaseScreen, text: str) -> None:
    """Show why a job waits."""
    number = screen.job()
    reason = await screen.rt.read_model.why(number)
    status = display_of(reason.status, paused=reason.shown_as_paused).word
    steps = "\n".join(reason.next_lines(screen.hints_of(number)))
    await screen.app.push_screen(
        TextDialog(f"{job_name(number)} {status}", f"{reason.text}\n\n{steps}")
    )


@dashboard_command("diff", CommandGroup.JOBS, keys="d", on=JOBS, takes_names=True)
async def diff(screen: BaseScreen, text: str) -> None:
    """Show the diff of a job."""
    await screen.show_diff(screen.job())


@dashboard_command("copy", CommandGroup.THIS_TABLE, keys="ctrl+y,Y")
async def copy(screen: BaseScreen, text: str) -> None:
    """Copy the ids of the selected rows.

    The terminal's clipboard gets them (OSC 52).
    """
    keys = screen.ids
    if not keys:
        raise Refused("nothing to copy")
    screen.app.copy_to_clipboard(" ".join(keys))
    screen.show_message(f"Copied {listed(keys)}")


def _one_job_command(name: str, action: Action[int, ..., Any]) -> None:
    async def run(screen: BaseScreen, text: str) -> None:
        await act(screen, action, screen.job(), text)

    dashboard_command(name, CommandGroup.JOBS, does=action, on=JOBS)(run)


_one_job_command("cancel-tree", jobs.cancel_tree)
_one_job_command("merge", changes.merge)
_one_job_command("checkout", changes.checkout)
_one_job_command("apply", changes.apply)


@dashboard_command("tell", CommandGroup.JOBS, does=jobs.tell, keys="m", on=LIVE)
async def tell(screen: BaseScreen, text: str) -> None:
    """Send a message to the agent of a job.

    Asks for the text unless it is given.
    """
    call = call_of(screen)
    number = screen.job()
    if not text:
        await jobs.tell.asked(call, number)

    async def send(message: str) -> str:
        return result_text(await jobs.tell(call, number, message))

    takes = jobs.tell.takes
    dialog = PromptDialog(takes.prompt.format(job_name(number)), takes.example, send)
    if (sent := await (send(text) if text else screen.ask(dialog))) is not None:
        screen.show_message(sent)


FRESH: Final = "Starts over as a new job, without checkpoints."


@dataclass(frozen=True, slots=True)
class RetryFilter:
    """Selection of jobs to retry, with the filters of `draftsman retry --status`."""

    statuses: tuple[Status, ...] = ()
    type: str | None = None
    agent: str | None = None
    repo: str | None = None
    since: float | None = None
    until: float | None = None
    fresh: bool = False


@dashboard_command(
    "retry",
    CommandGroup.JOBS,
    does=jobs.retry,
    keys="r",
    on=JOBS,
    footer=JOBS - {"inbox"},
)
async def retry(screen: BaseScreen, text: str) -> None:
    """Retry finished jobs from their last checkpoint, after confirmation."""
    options = jobs.parse_retry(text)
    selection = await select(screen.rt, jobs.retry, screen.jobs())
    if [*selection.statuses.values()] == [Status.COMPLETED] and not options.get("again"):
        question = f"{job_name(selection.numbers[0])} completed. Run it again?"
        note = "Creates another job, which may make the same changes again."
        is_sure = await asked(screen, question, note)
        options["again"] = True
    else:
        is_sure = await confirmed(screen, selection, FRESH if options.get("fresh") else "")
    if is_sure:
        await _retry(screen, selection.numbers, options)


@dashboard_command(
    "retry-all",
    CommandGroup.JOBS,
    does=jobs.retry,
    on={"jobs", "dead"},
    takes="status:failed since:2h",
)
async def retry_all(screen: MainScreen, text: str) -> None:
    """Retry every finished job that matches the filter."""
    selection_filter = parse(text) if text else from_filter(screen.state.filter, screen.view_name)
    matches = await screen.rt.finished_jobs.matching(
        selection_filter.statuses,
        type=selection_filter.type,
        agent=selection_filter.agent,
        repo=selection_filter.repo,
        since=selection_filter.since,
        until=selection_filter.until,
    )
    new = [job for job in matches if not job.settled]
    skipped = "; ".join(settled_lines(matches))
    if not new:
        problem = skipped or "no finished job matches"
        values = {name: getattr(selection_filter, name) for name in ("type", "agent", "repo")}
        unknown = "" if skipped else await unknown_value(screen.rt, values)
        raise Refused(f"nothing to retry: {unknown or problem}")
    selection = Selection.of(jobs.retry, new)
    earlier = f"{skipped}. " if skipped else ""
    consequence = FRESH if selection_filter.fresh else jobs.retry.consequence
    if await confirmed(screen, selection, f"{earlier}{consequence}"):
        options = {"again": Status.COMPLETED in selection_filter.statuses}
        await _retry(screen, selection.numbers, options | {"fresh": selection_filter.fresh})


def parse(text: str) -> RetryFilter:
    """Parse `status:failed,dead_letter type:run_agent agent:tidy repo:pay since:2h fresh`.

    Raises UsageError.
    """
    selection = RetryFilter()
    for token in text.split():
        name, _, value = token.partition(":")
        match name, bool(value):
            case "fresh", False:
                selection = replace(selection, fresh=True)
            case "status", True:
                status_filter = Filter(
                    statuses=tuple(value.casefold().replace("-", "_").split(","))
                )
                selection = replace(selection, statuses=tuple(statuses(status_filter) or ()))
            case "since" | "until" | "type" | "agent" | "repo", True:
                is_time = name in ("since", "until")
                field: dict[str, Any] = {name: parse_since(value) if is_time else value}
                selection = replace(selection, **field)
            case _:
                raise UsageError(
                    f"unknown argument {token!r}; allowed: status: type: agent: repo: since: until:"
                    " fresh, for example retry-all status:dead_letter since:2h"
                )
    return _validate(selection)


def from_filter(table_filter: Filter, view_name: str) -> RetryFilter:
    """Convert a table's filter; raises UsageError if it has other fields than a retry."""
    if replace(table_filter, statuses=(), agent=None, repo=None) != Filter():
        raise UsageError(
            "retry-all does not support this filter; mark rows (space, V) and press r,"
            " or enter retry-all status:failed agent:NAME repo:NAME since:2h"
        )
    selected = tuple(statuses(table_filter) or ())
    if view_name == "dead":
        selected = (Status.DEAD_LETTER,)
    return _validate(RetryFilter(selected, agent=table_filter.agent, repo=table_filter.repo))


def _validate(selection: RetryFilter) -> RetryFilter:
    if not selection.statuses:
        raise UsageError("status is required, for example retry-all status:dead_letter since:2h")
    if live := [status for status in selection.statuses if status not in TERMINAL]:
        allowed = ", ".join(sorted(TERMINAL))
        raise UsageError(f"cannot retry {live[0]} jobs; choose from: {allowed}")
    return selection


async def _retry(screen: BaseScreen, numbers: Sequence[int], options: dict[str, bool]) -> None:
    call = call_of(screen)
    results = await perform_each(
        screen, jobs.retry, numbers, lambda job: jobs.retry(call, job, **options)
    )
    await screen.after_retry([result.value.number for result in results])


@dashboard_command("browse", CommandGroup.THIS_TABLE, keys="o", takes="ticket|pr|thread")
async def browse(screen: BaseScreen, text: str) -> None:
    """Open the web page of a row in the browser.

    Asks which page if there are several.
    """
    screen.check_single("row")
    numbers = screen.jobs(optional=True)
    pages = [("page", screen.page_url)] if screen.page_url and not numbers else []
    pages = [(title, url) for title, url in pages if is_web_url(url)]
    if numbers:
        pages += await pages_of(screen.rt, numbers[0])
    choices = [
        (f"{title}  {url}", url)
        for title, url in pages
        if title.startswith("pull" if text == "pr" else text)
    ]
    if not choices:
        raise Refused(f"this row has no {text or 'web page'} to open")
    several = len(choices) > 1
    url = await screen.ask(ChoiceDialog("Open which page?", choices)) if several else choices[0][1]
    if url is not None:
        screen.app.open_url(url)
        screen.show_message(f"Opened {url}")
