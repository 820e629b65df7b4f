"""Job commands: cancel, pause, message to the agent, wait reason, diff and copy."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from draftsman.durations import parse_duration
from draftsman.errors import Refused, UsageError
from draftsman.ids import job_name
from draftsman.jobs.control.service.control import CancelResult
from draftsman.jobs.job import TERMINAL, Status
from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
from draftsman.people.policy import Verb
from draftsman.text import first_line, humanize
from draftsman_tui.changes.merge_request import published_pull_request, request_merge
from draftsman_tui.changes.user_repository import (
    UserRepository,
    apply_patch,
    check_out,
    patch_of,
    published_work,
)
from draftsman_tui.common.job_pages import is_web_url, pages_of
from draftsman_tui.dashboard.command import JOBS, CommandGroup, dashboard_command
from draftsman_tui.dashboard.dialogs.simple_dialogs import (
    ChoiceDialog,
    ConfirmDialog,
    PromptDialog,
    TextDialog,
    TypedConfirmDialog,
)
from draftsman_tui.dashboard.frame.bulk import (
    MAX_LISTED,
    confirm_bulk,
    job_names,
    report_held,
    report_rejections,
    run_bulk,
)
from draftsman_tui.dashboard.jobs.view import statuses
from draftsman_tui.dashboard.tables.filter import Filter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draftsman.jobs.control.job_message import SentMessage
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman_tui.dashboard.frame.base_screen import BaseScreen
    from draftsman_tui.dashboard.tables.screen import MainScreen


@dashboard_command(
    "cancel",
    CommandGroup.JOBS,
    keys="c",
    on=JOBS - {"dead"},
    needs=Verb.CANCEL,
    takes="REASON",
    footer=True,
)
async def cancel(screen: BaseScreen, text: str) -> None:
    """Cancel jobs, after confirmation.

    `text` is the reason.
    """
    numbers, finished_note = await _cancelable(screen)
    note = f"{finished_note} Reason: {text}" if text else f"{finished_note} Work so far is kept."
    note = await _cancel_note(screen, numbers, note.strip())
    if await confirm_bulk(screen, "Cancel", numbers, note, of=len(screen.jobs())):
        await _cancel(screen, numbers, text, force=False)


@dashboard_command(
    "cancel-force",
    CommandGroup.JOBS,
    keys="ctrl+k",
    on=JOBS - {"dead"},
    needs=Verb.CANCEL,
    takes="REASON",
)
async def cancel_force(screen: BaseScreen, text: str) -> None:
    """Cancel jobs without waiting for their worker, after typed confirmation."""
    numbers, finished_note = await _cancelable(screen)
    question = f"Cancel {job_names(numbers)} without waiting for the worker?"
    note = f"{finished_note} Later writes of the run are rejected; external effects stay."
    word = job_name(numbers[0]) if len(numbers) == 1 else f"cancel {len(numbers)}"
    if await screen.ask(
        TypedConfirmDialog(question, await _cancel_note(screen, numbers, note.strip()), word)
    ):
        await _cancel(screen, numbers, text, force=True)


@dashboard_command(
    "pause-job", CommandGroup.JOBS, keys="z", on=JOBS - {"dead"}, needs=Verb.PAUSE, takes="REASON"
)
async def pause(screen: BaseScreen, text: str) -> None:
    """Pause a job at its checkpoint.

    Asks for the reason unless it is given.
    """
    number = screen.jobs()[0]
    if not text:
        await screen.rt.job_control.check_pause(number, screen.actor)
    dialog = PromptDialog(f"Reason for the pause of {job_name(number)}?", "the API is down")
    if reason := text or await screen.ask(dialog):
        await screen.rt.job_control.pause(number, screen.actor, reason)
        screen.show_message(f"{job_name(number)} paused")


@dashboard_command("resume-job", CommandGroup.JOBS, keys="Z", on=JOBS - {"dead"}, needs=Verb.PAUSE)
async def resume(screen: BaseScreen, text: str) -> None:
    """Continue a paused job."""
    number = screen.jobs()[0]
    await screen.rt.job_control.resume(number, screen.actor)
    screen.show_message(f"{job_name(number)} resumed")


@dashboard_command("why", CommandGroup.JOBS, keys="w", on=JOBS, footer=True)
async def why(screen: BaseScreen, text: str) -> None:
    """Show why a job waits."""
    number = screen.jobs()[0]
    reason = await screen.rt.read_model.why(number)
    status = humanize(str(reason.status))
    await screen.app.push_screen(
        TextDialog(f"{job_name(number)} {status}", f"{reason.text}\n\n{reason.next_step}")
    )


@dashboard_command("diff", CommandGroup.JOBS, keys="d", on=JOBS)
async def diff(screen: BaseScreen, text: str) -> None:
    """Show the diff of a job."""
    await screen.show_diff(screen.jobs()[0])


@dashboard_command("copy", CommandGroup.THIS_TABLE, keys="ctrl+y,Y")
async def copy(screen: BaseScreen, text: str) -> None:
    """Copy the ids of the selected rows.

    The terminal's clipboard gets them (OSC 52).
    """
    keys = screen.ids
    if not keys:
        raise Refused("nothing to copy")
    screen.app.copy_to_clipboard(" ".join(keys))
    screen.show_message(
        f"Copied {', '.join(keys[:MAX_LISTED])}" + (", …" if keys[MAX_LISTED:] else "")
    )


async def _cancelable(screen: BaseScreen) -> tuple[list[int], str]:
    """Return the selected jobs that can be canceled, and a note about the finished jobs.

    Raises Refused if all have finished.
    """
    statuses = {
        number: (await screen.rt.read_model.version(number)).status for number in screen.jobs()
    }
    finished = [number for number, status in statuses.items() if status in TERMINAL]
    cancelable = [number for number in statuses if number not in finished]
    if not cancelable and len(finished) == 1:
        status = humanize(str(statuses[finished[0]]))
        raise Refused(f"{job_name(finished[0])} is already {status}; nothing to cancel")
    note = f"{job_names(finished)} {'have' if finished[1:] else 'has'} already finished"
    if not cancelable:
        raise Refused(f"{note}; nothing to cancel")
    return cancelable, f"{note}." if finished else ""


async def _cancel(screen: BaseScreen, numbers: list[int], reason: str, *, force: bool) -> None:
    results: list[CancelResult] = []
    held: list[PendingDecision] = []

    async def cancel_job(number: int) -> None:
        result = await screen.rt.pending_decisions.cancel(
            number,
            screen.actor,
            reason or None,
            force=force,
            event=f"tui:{uuid4()}",
            window=screen.session.undo.seconds,
        )
        (held if isinstance(result, PendingDecision) else results).append(result)  # type: ignore[arg-type]

    bulk = await run_bulk(screen, "Canceling", numbers, cancel_job)
    requested = [result.number for result in results if result.requested]
    if requested:
        screen.show_message(f"Requested cancellation of {job_names(requested)}")
    bulk.done = [result.number for result in results if not result.requested]
    report_held(screen, bulk, "canceled", held)


async def _cancel_note(screen: BaseScreen, numbers: list[int], note: str) -> str:
    """Prefix the note with the title and status if there is a single job."""
    if len(numbers) > 1:
        return note
    job = await screen.rt.read_model.job(numbers[0])
    title = first_line(job.ticket_title or job.type, 60)
    stop = "; its worker is asked to stop it" if job.status is Status.RUNNING else ""
    return f"{title}: {str(job.status).replace('_', ' ')}{stop}. {note}"


@dashboard_command("merge", CommandGroup.JOBS, on=JOBS, needs=Verb.SUBMIT)
async def merge(screen: BaseScreen, text: str) -> None:
    """Request the merge of the pull request of a job, after confirmation."""
    number, url = await published_pull_request(screen.rt, screen.jobs()[0])
    question = f"Merge the pull request of {job_name(number)}?"
    note = f"{url}: an approval is asked for once its checks have passed."
    if await screen.ask(ConfirmDialog(question, note)) is True:
        submitted = await request_merge(screen.rt, number, url)
        screen.show_message(f"{submitted.name} asks for the merge once the checks have passed")


@dashboard_command("checkout", CommandGroup.JOBS, on=JOBS, takes="DIRECTORY")
async def checkout(screen: BaseScreen, text: str) -> None:
    """Check out the branch of a job in your repository, after confirmation.

    `text` is a folder of the repository.
    """
    published = await published_work(screen.rt, screen.jobs()[0])
    repository = _repository(text)
    if await _confirmed(screen, f"Check out {published.branch}?", repository):
        head = await asyncio.to_thread(check_out, repository, published)
        screen.show_message(f"{repository.top}: branch {published.branch} at {head[:12]}")


@dashboard_command("apply", CommandGroup.JOBS, on=JOBS, takes="DIRECTORY")
async def apply(screen: BaseScreen, text: str) -> None:
    """Apply the changes of a job to your repository, after confirmation.

    `text` is a folder of the repository.
    """
    number = screen.jobs()[0]
    patch = await patch_of(screen.rt, number, None)
    repository = _repository(text)
    name = job_name(number)
    if await _confirmed(screen, f"Apply the changes of {name}?", repository):
        screen.show_message(await asyncio.to_thread(apply_patch, repository, name, patch))


def _repository(text: str) -> UserRepository:
    return UserRepository.at(Path(text.strip() or ".").expanduser())


async def _confirmed(screen: BaseScreen, question: str, repository: UserRepository) -> bool:
    return await screen.ask(ConfirmDialog(question, f"In {repository.top}.")) is True


@dashboard_command(
    "tell", CommandGroup.JOBS, keys="m", on=JOBS - {"dead"}, needs=Verb.TELL, takes="TEXT"
)
async def tell(screen: BaseScreen, text: str) -> None:
    """Send a message to the agent of a job.

    Asks for the text unless it is given.
    """
    number = screen.jobs()[0]
    if not text:
        await screen.rt.messages.check(number, screen.actor)

    async def send(message: str) -> SentMessage:
        return await screen.rt.messages.send(number, screen.actor, message)

    dialog = PromptDialog(f"Message to the agent of {job_name(number)}?", "use the v2 API", send)
    if (sent := await (send(text) if text else screen.ask(dialog))) is not None:
        screen.show_message(f"M{str(sent)[1:]}")


# Retry commands: the selected jobs, or all that match a filter.


OPTIONS: Final = {"fresh": "fresh", "again": "again", "with-answer": "with_answer"}
"""Arguments of `:retry`, and the options of the retry service."""


@dataclass(frozen=True, slots=True)
class RetryFilter:
    """Selection of jobs to retry, with the filters of `draftsman retry --status`."""

    statuses: tuple[Status, ...] = ()
    type: str | None = None
    agent: str | None = None
    repo: str | None = None
    since: float | None = None
    fresh: bool = False


@dashboard_command(
    "retry",
    CommandGroup.JOBS,
    keys="r",
    on=JOBS,
    needs=Verb.RETRY,
    takes="fresh again with-answer",
    footer=JOBS - {"inbox"},
)
async def retry(screen: BaseScreen, text: str) -> None:
    """Retry finished jobs from their last checkpoint, after confirmation."""
    options = _parse_options(text)
    numbers = screen.jobs()
    if len(numbers) > 1:
        if not await confirm_bulk(screen, "Retry", numbers, _how_text(options)):
            return
    elif not await _confirm_single(screen, numbers[0], options):
        return
    await _retry(screen, numbers, options)


@dashboard_command(
    "retry-all",
    CommandGroup.JOBS,
    on={"jobs", "dead"},
    needs=Verb.RETRY,
    takes="status:failed since:2h",
)
async def retry_all(screen: MainScreen, text: str) -> None:
    """Retry every finished job that matches the filter."""
    selection = parse(text) if text else from_filter(screen.state.filter, screen.view_name)
    matches = await screen.rt.bulk_retry.matching(
        selection.statuses,
        type=selection.type,
        agent=selection.agent,
        repo=selection.repo,
        since=selection.since,
    )
    new = [job for job in matches if job.followed_by is None]
    skipped = len(matches) - len(new)
    note = f"{skipped:,} already retried. " if skipped else ""
    if not new:
        raise Refused(
            "nothing to retry: "
            + ("all matching jobs were already retried" if skipped else "no finished job matches")
        )
    counts = Counter(humanize(str(job.status)) for job in new)
    kinds = ", ".join(f"{count:,} {status}" for status, count in counts.items())
    options = {"fresh": True} if selection.fresh else {}
    if await confirm_bulk(
        screen, "Retry", [job.number for job in new], f"{kinds}. {note}{_how_text(options)}"
    ):
        options["again"] = Status.COMPLETED in selection.statuses
        await _retry(screen, [job.number for job in new], options)


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
            case "since", True:
                selection = replace(selection, since=parse_duration(value))
            case "type" | "agent" | "repo", True:
                field: dict[str, Any] = {name: value}
                selection = replace(selection, **field)
            case _:
                raise UsageError(
                    f"unknown argument {token!r}; allowed: status: type: agent: repo: since: fresh,"
                    " for example retry-all status:dead_letter since:2h"
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
    retried: dict[int, SubmittedJob] = {}

    async def retry_job(number: int) -> None:
        retried[number] = await screen.rt.job_control.retry(number, screen.actor, **options)

    result = await run_bulk(screen, "Retrying", numbers, retry_job)
    lines = [
        f"{job_name(old)} retried as {new.name}{'' if new.outcome == 'created' else ' earlier'}"
        for old, new in retried.items()
    ]
    if len(lines) > MAX_LISTED:
        screen.show_message(f"Retried {len(lines):,} jobs: {job_names(list(retried))}")
    elif lines:
        screen.show_message("; ".join(lines))
    if result.untried:
        screen.show_error(
            f"Stopped; {result.untried:,} of {len(numbers):,} jobs not retried;"
            " run the command again for the rest"
        )
    report_rejections(screen, result)
    await screen.after_retry([new.number for new in retried.values()])


async def _confirm_single(screen: BaseScreen, number: int, options: dict[str, bool]) -> bool:
    """Ask for confirmation, and set `again` for a completed job.

    An unfinished job is not asked about: the service rejects its retry with a hint.
    """
    job = await screen.rt.read_model.job(number)
    if job.status not in TERMINAL:
        return True
    if job.status is Status.COMPLETED and not options.get("again"):
        question = f"{job.name} completed. Run it again?"
        note = "Creates another job, which may make the same changes again."
        options["again"] = True
    else:
        question = f"Retry {job.name}?"
        title = first_line(job.ticket_title or job.type, 60)
        note = f"{title}: {str(job.status).replace('_', ' ')}. {_how_text(options)}"
    return await screen.ask(ConfirmDialog(question, note)) is True


def _parse_options(text: str) -> dict[str, bool]:
    """Parse `fresh again with-answer`; raises UsageError."""
    words = text.split()
    if unknown := [word for word in words if word not in OPTIONS]:
        raise UsageError(f"unknown argument {unknown[0]!r}; allowed: {', '.join(OPTIONS)}")
    return {OPTIONS[word]: True for word in words}


def _how_text(options: dict[str, bool]) -> str:
    if options.get("fresh"):
        return "Starts over as a new job, without checkpoints."
    return "Continues as a new job from the last checkpoint."


# Web pages of a row: ticket, pull request, repository and message threads.


@dashboard_command("browse", CommandGroup.THIS_TABLE, keys="o", takes="ticket|pr|thread")
async def browse(screen: BaseScreen, text: str) -> None:
    """Open the web page of a row in the browser.

    Asks which page if there are several.
    """
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
