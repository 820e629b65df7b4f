"""Jobs that ended, run anew: those that are chosen, or all that match a filter."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from draftsman.domain.job import TERMINAL, Status
from draftsman.domain.text import first_line
from draftsman.errors import Refused, UsageError
from draftsman_tui.common import times
from draftsman_tui.dashboard.actions.bulk import (
    TOLD,
    confirm_bulk,
    job_names,
    report_rejections,
    run_bulk,
)
from draftsman_tui.dashboard.dialogs.confirm_dialog import ConfirmDialog
from draftsman_tui.dashboard.filter import Filter
from draftsman_tui.dashboard.views.jobs import statuses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draftsman.services.jobs.submissions import SubmittedJob
    from draftsman_tui.dashboard.screens.base import BaseScreen
    from draftsman_tui.dashboard.screens.main import MainScreen

HOW: Final = {"fresh": "fresh", "again": "again", "with-answer": "with_answer"}
"""What may follow `retry`, as the options of the command line are called."""


@dataclass(frozen=True, slots=True)
class RetryFilter:
    """Which jobs are to be retried: what `draftsman retry --status` takes."""

    statuses: tuple[Status, ...] = ()
    type: str | None = None
    agent: str | None = None
    repo: str | None = None
    since: float | None = None
    fresh: bool = False


async def retry(desk: BaseScreen, text: str) -> None:
    """Make new jobs of the chosen ones."""
    options = _options(text)
    numbers = desk.jobs()
    if len(numbers) > 1:
        if not await confirm_bulk(desk, "Retry", numbers, _how(options)):
            return
    elif not await _sure_of_one(desk, numbers[0], options):
        return
    await _retry(desk, numbers, options)


async def retry_all(desk: MainScreen, text: str) -> None:
    """Count the jobs that match, and make new ones of them after a yes."""
    wanted = parse(text) if text else of_filter(desk.state.filter, desk.place)
    found = await desk.rt.bulk_retry.matching(
        wanted.statuses,
        type=wanted.type,
        agent=wanted.agent,
        repo=wanted.repo,
        since=wanted.since,
    )
    new = [job for job in found if job.followed_by is None]
    before = len(found) - len(new)
    said = f"{before:,} of them retried before. " if before else ""
    if not new:
        raise Refused(f"nothing to retry: no job ended so{' anew' if before else ''}")
    counts = Counter(str(job.status).replace("_", " ") for job in new)
    kinds = ", ".join(f"{count:,} {status}" for status, count in counts.items())
    options = {"fresh": True} if wanted.fresh else {}
    if await confirm_bulk(
        desk, "Retry", [job.number for job in new], f"{kinds}. {said}{_how(options)}"
    ):
        options["again"] = Status.COMPLETED in wanted.statuses
        await _retry(desk, [job.number for job in new], options)


def parse(text: str) -> RetryFilter:
    """Read `status:failed,dead_letter type:run_agent agent:tidy repo:pay since:2h fresh`.

    Raises UsageError.
    """
    wanted = RetryFilter()
    for token in text.split():
        name, _, value = token.partition(":")
        match name, bool(value):
            case "fresh", False:
                wanted = replace(wanted, fresh=True)
            case "status", True:
                named = Filter(statuses=tuple(value.casefold().replace("-", "_").split(",")))
                wanted = replace(wanted, statuses=tuple(statuses(named) or ()))
            case "since", True:
                wanted = replace(wanted, since=times.parse_duration(value))
            case "type" | "agent" | "repo", True:
                field: dict[str, Any] = {name: value}
                wanted = replace(wanted, **field)
            case _:
                raise UsageError(
                    f"{token!r}: give status: type: agent: repo: since: and fresh,"
                    " as in retry-all status:dead_letter since:2h"
                )
    return _ended(wanted)


def of_filter(shown: Filter, place: str) -> RetryFilter:
    """Return what a table shows, as far as its filter says only what `retry --status` takes."""
    if replace(shown, statuses=(), agent=None, repo=None) != Filter():
        raise UsageError(
            "the filter says more than a retry of all can take: mark the rows (space, V) and"
            " press r, or give retry-all status:failed agent:NAME repo:NAME since:2h"
        )
    found = tuple(statuses(shown) or ())
    if place == "dead":
        found = (Status.DEAD_LETTER,)
    return _ended(RetryFilter(found, agent=shown.agent, repo=shown.repo))


def _ended(wanted: RetryFilter) -> RetryFilter:
    if not wanted.statuses:
        raise UsageError("of which status? as in retry-all status:dead_letter since:2h")
    if live := [one for one in wanted.statuses if one not in TERMINAL]:
        ends = ", ".join(sorted(TERMINAL))
        raise UsageError(f"a job that is {live[0]} has not ended; choose: {ends}")
    return wanted


async def _retry(desk: BaseScreen, numbers: Sequence[int], options: dict[str, bool]) -> None:
    made: dict[int, SubmittedJob] = {}

    async def again(number: int) -> None:
        made[number] = await desk.rt.job_control.retry(number, desk.actor, **options)

    tally = await run_bulk(desk, "Retrying", numbers, again)
    said = [
        f"D-{old} goes on as {new.name}{'' if new.how == 'created' else ', made before'}"
        for old, new in made.items()
    ]
    if len(said) > TOLD:
        desk.show_message(f"{len(said):,} retried: {job_names(list(made))}")
    elif said:
        desk.show_message("; ".join(said))
    if tally.left:
        desk.show_error(
            f"stopped; {tally.left:,} of {len(numbers):,} left; again takes up the rest"
        )
    report_rejections(desk, tally)
    await desk.retried([new.number for new in made.values()])


async def _sure_of_one(desk: BaseScreen, number: int, options: dict[str, bool]) -> bool:
    """Ask before a job is retried, and set `again` for one that completed.

    A job that has not ended is not asked about: the retry is refused, which says what to do.
    """
    job = await desk.rt.read_model.job(number)
    if job.status not in TERMINAL:
        return True
    if job.status is Status.COMPLETED and not options.get("again"):
        question = f"{job.name} completed. Run it once more?"
        note = "It ends as another job, and its changes may be made twice."
        options["again"] = True
    else:
        question = f"Retry {job.name}?"
        title = first_line(job.ticket_title or job.type, 60)
        note = f"{title}: {str(job.status).replace('_', ' ')}. {_how(options, 'It goes')}"
    return await desk.ask(ConfirmDialog(question, note)) is True


def _options(text: str) -> dict[str, bool]:
    """Read `fresh again with-answer`; raises UsageError."""
    words = text.split()
    if strange := [word for word in words if word not in HOW]:
        raise UsageError(f"retry {strange[0]!r}: what may follow is {', '.join(HOW)}")
    return {HOW[word]: True for word in words}


def _how(options: dict[str, bool], goes: str = "Each goes") -> str:
    if options.get("fresh"):
        return f"{goes} on as a new job, from the start, without what was kept."
    return f"{goes} on as a new job, from its last checkpoint."
