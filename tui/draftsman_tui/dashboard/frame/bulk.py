"""Bulk operations: confirmation, progress and summary."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from draftsman.errors import DatabaseUnreachable, DraftsmanError
from draftsman.ids import job_name
from draftsman.jobs.control.service.control import AGAIN_OPTION
from draftsman_tui.dashboard.dialogs.simple_dialogs import ConfirmDialog, ProgressDialog, TextDialog

if TYPE_CHECKING:
    from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
    from draftsman_tui.dashboard.frame.base_screen import BaseScreen

MAX_LISTED: Final = 5
"""Jobs that a message lists by name; the rest are counted."""
PROGRESS_DELAY: Final = 0.4
"""Seconds before the progress dialog opens."""


@dataclass(slots=True)
class BulkResult:
    """Outcome of a bulk operation, by job number; `untried` counts the rest."""

    done: list[int] = field(default_factory=list)
    refused: dict[int, DraftsmanError] = field(default_factory=dict)
    untried: int = 0

    def reasons(self) -> dict[str, list[int]]:
        """Return job numbers grouped by the reason of their rejection."""
        grouped: dict[str, list[int]] = {}
        for number, error in self.refused.items():
            text = error_text(error, printed_subject=job_name(number))
            grouped.setdefault(text, []).append(number)
        return grouped


def error_text(error: DraftsmanError, *, printed_subject: str = "") -> str:
    """Return the message of an error with its hint, as a dashboard command where it has one.

    The subject is omitted if it equals `printed_subject`, which the caller prints itself.
    """
    subject = f"{error.subject} " if error.subject and error.subject != printed_subject else ""
    hint = "to run it again, enter :retry again" if error.hint == AGAIN_OPTION else error.hint
    return f"{subject}{error.reason}{f'; {hint}' if hint else ''}"


async def confirm_bulk(
    screen: BaseScreen, verb: str, numbers: Sequence[int], note: str = "", *, of: int = 0
) -> bool:
    """Ask for confirmation, listing the first jobs; `of` is the number of selected jobs."""
    count = f"{len(numbers):,} jobs: " if len(numbers) > MAX_LISTED else ""
    if of > len(numbers):
        count = f"{len(numbers):,} of {of:,} jobs: "
    answer = await screen.ask(ConfirmDialog(f"{verb} {count}{job_names(numbers)}?", note))
    return answer is True


async def run_bulk(
    screen: BaseScreen, title: str, numbers: Sequence[int], do: Callable[[int], Awaitable[object]]
) -> BulkResult:
    """Apply `do` to each job in turn until Escape, continuing after a rejected job.

    Rejected jobs and jobs that were not tried stay marked.
    """
    result = BulkResult()
    progress = ProgressDialog(title, len(numbers))
    timer = None
    if len(numbers) > 1:
        timer = screen.set_timer(PROGRESS_DELAY, lambda: _show(screen, progress))
    try:
        for number in numbers:
            try:
                await do(number)
            except DatabaseUnreachable as error:
                screen.show_error(str(error))
                break
            except DraftsmanError as error:
                result.refused[number] = error
            else:
                result.done.append(number)
            progress.show(len(result.done) + len(result.refused), len(result.refused))
            if progress.stopped:
                break
    finally:
        if timer is not None:
            timer.stop()
        if progress.is_attached:
            progress.dismiss(None)
    handled = {*result.done, *result.refused}
    result.untried = len(numbers) - len(handled)
    screen.keep_marked([number for number in numbers if number not in result.done])
    return result


def report_bulk(screen: BaseScreen, result: BulkResult, done: str) -> None:
    """Show a summary; `done` is the past participle for the jobs that succeeded."""
    if result.done:
        screen.show_message(f"{job_names(result.done)} {done}")
    if result.untried:
        total = result.untried + len(result.done) + len(result.refused)
        screen.show_error(
            f"Stopped; {result.untried:,} of {total:,} jobs not processed; they stay marked"
        )
    report_rejections(screen, result)


def report_held(
    screen: BaseScreen, result: BulkResult, done: str, held: Sequence[PendingDecision]
) -> None:
    """Report as `report_bulk`; the undo line shows the jobs whose decisions can be undone."""
    if held:
        names = job_names([decision.job for decision in held])
        screen.session.undo.hold(f"{names} {done}", held)
    pending = {decision.job for decision in held}
    result.done = [number for number in result.done if number not in pending]
    report_bulk(screen, result, done)


def report_rejections(screen: BaseScreen, result: BulkResult) -> None:
    """Show the rejected jobs: a line for each reason, or a dialog if there are many."""
    reasons = result.reasons()
    lines = [
        f"{'each of ' if numbers[1:] else ''}{job_names(numbers)} {reason}"
        for reason, numbers in reasons.items()
    ]
    if len(lines) > MAX_LISTED:
        title = f"{len(result.refused):,} jobs rejected; they stay marked"
        screen.app.push_screen(TextDialog(title, "\n".join(lines)))
        return
    for line in lines:
        screen.show_error(line)


def job_names(numbers: Sequence[int]) -> str:
    """Return the names of the first jobs and the number of the rest."""
    names = ", ".join(job_name(number) for number in numbers[:MAX_LISTED])
    return names + (f" and {len(numbers) - MAX_LISTED:,} more" if numbers[MAX_LISTED:] else "")


def _show(screen: BaseScreen, progress: ProgressDialog) -> None:
    screen.app.push_screen(progress)
