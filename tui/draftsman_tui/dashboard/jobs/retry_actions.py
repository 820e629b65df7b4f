"""Retry commands: the selected jobs, or all that match a filter."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from draftsman.errors import Refused, UsageError
from draftsman.ids import job_name
from draftsman.jobs.job import TERMINAL, Status
from draftsman.text import first_line, humanize
from draftsman_tui.dashboard.dialogs.confirm_dialog import ConfirmDialog
from draftsman_tui.dashboard.frame.bulk import (
    MAX_LISTED,
    confirm_bulk,
    job_names,
    report_rejections,
    run_bulk,
)
from draftsman_tui.dashboard.jobs.view import statuses
from draftsman_tui.dashboard.tables.filter import Filter
from draftsman_tui.terminal import times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman_tui.dashboard.frame.base_screen import BaseScreen
    from draftsman_tui.dashboard.tables.screen import MainScreen

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


async def retry(screen: BaseScreen, text: str) -> None:
    """Retry the selected jobs."""
    options = _parse_options(text)
    numbers = screen.jobs()
    if len(numbers) > 1:
        if not await confirm_bulk(screen, "Retry", numbers, _how_text(options)):
            return
    elif not await _confirm_single(screen, numbers[0], options):
        return
    await _retry(screen, numbers, options)


async def retry_all(screen: MainScreen, text: str) -> None:
    """Retry every finished job that matches the filter, after confirmation."""
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
                selection = replace(selection, since=times.parse_duration(value))
            case "type" | "agent" | "repo", True:
                field: dict[str, Any] = {name: value}
                selection = replace(selection, **field)
            case _:
                raise UsageError(
                    f"unknown argument {token!r}; allowed: status: type: agent: repo: since: fresh,"
                    " for example retry-all status:dead_letter since:2h"
                )
    return _validate(selection)


def from_filter(shown: Filter, view_name: str) -> RetryFilter:
    """Convert a table's filter; raises UsageError if it has other fields than a retry."""
    if replace(shown, statuses=(), agent=None, repo=None) != Filter():
        raise UsageError(
            "retry-all does not support this filter; mark rows (space, V) and press r,"
            " or enter retry-all status:failed agent:NAME repo:NAME since:2h"
        )
    selected = tuple(statuses(shown) or ())
    if view_name == "dead":
        selected = (Status.DEAD_LETTER,)
    return _validate(RetryFilter(selected, agent=shown.agent, repo=shown.repo))


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
