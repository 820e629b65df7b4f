"""One thing done to many rows: asked about before, seen while it goes on, summed up at the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from draftsman.errors import DatabaseUnreachable, DraftsmanError
from draftsman.services.jobs.job_control import AGAIN_OPTION
from draftsman_tui.dashboard.dialogs.confirm_dialog import ConfirmDialog
from draftsman_tui.dashboard.dialogs.progress_dialog import ProgressDialog
from draftsman_tui.dashboard.dialogs.text_dialog import TextDialog

if TYPE_CHECKING:
    from draftsman_tui.dashboard.screens.base import BaseScreen

TOLD: Final = 5
"""Names that a message lists; the rest is counted."""
PATIENCE: Final = 0.4
"""Seconds that something may take before it is shown how far it is."""


@dataclass(slots=True)
class BulkResult:
    """What became of each: done, refused and why, or left when it was stopped."""

    done: list[int] = field(default_factory=list)
    refused: dict[int, DraftsmanError] = field(default_factory=dict)
    left: int = 0

    def reasons(self) -> dict[str, list[int]]:
        """Return the refusals, those for the same reason together."""
        grouped: dict[str, list[int]] = {}
        for number, error in self.refused.items():
            text = error_text(error, about=f"D-{number}")
            grouped.setdefault(text, []).append(number)
        return grouped


def error_text(error: DraftsmanError, *, about: str = "") -> str:
    """Return the message of an error with its hint as it is typed here.

    The subject is left out where it is `about`, which is named beside it.
    """
    named = f"{error.subject} " if error.subject and error.subject != about else ""
    hint = "to run it once more type :retry again" if error.hint == AGAIN_OPTION else error.hint
    return f"{named}{error.reason}{f'; {hint}' if hint else ''}"


async def confirm_bulk(
    desk: BaseScreen, verb: str, numbers: Sequence[int], note: str = "", *, of: int = 0
) -> bool:
    """Ask whether it is meant: how many, `of` how many that were chosen, and the first of them."""
    many = f"{len(numbers):,} jobs: " if len(numbers) > TOLD else ""
    if of > len(numbers):
        many = f"{len(numbers):,} of {of:,} jobs: "
    said = await desk.ask(ConfirmDialog(f"{verb} {many}{job_names(numbers)}?", note))
    return said is True


async def run_bulk(
    desk: BaseScreen, doing: str, numbers: Sequence[int], do: Callable[[int], Awaitable[object]]
) -> BulkResult:
    """Do it to each in turn, until Escape; who is refused does not hinder the others.

    What was refused stays marked, and so does what is left.
    """
    tally, shown = BulkResult(), ProgressDialog(doing, len(numbers))
    slow = desk.set_timer(PATIENCE, lambda: _show(desk, shown)) if len(numbers) > 1 else None
    try:
        for number in numbers:
            try:
                await do(number)
            except DatabaseUnreachable as error:
                desk.show_error(str(error))
                break
            except DraftsmanError as error:
                tally.refused[number] = error
            else:
                tally.done.append(number)
            shown.show(len(tally.done) + len(tally.refused), len(tally.refused))
            if shown.stopped:
                break
    finally:
        if slow is not None:
            slow.stop()
        if shown.is_attached:
            shown.dismiss(None)
    handled = {*tally.done, *tally.refused}
    tally.left = len(numbers) - len(handled)
    desk.keep([number for number in numbers if number not in tally.done])
    return tally


def report_bulk(desk: BaseScreen, tally: BulkResult, done: str) -> None:
    """Say what became of them; `done` is said of those that worked."""
    if tally.done:
        desk.show_message(f"{job_names(tally.done)} {done}")
    if tally.left:
        total = tally.left + len(tally.done) + len(tally.refused)
        desk.show_error(f"stopped; {tally.left:,} of {total:,} left, which are marked")
    report_rejections(desk, tally)


def report_rejections(desk: BaseScreen, tally: BulkResult) -> None:
    """Say what was refused and why: in a line each, or, of many reasons, on a page."""
    reasons = tally.reasons()
    lines = [
        f"{'each of ' if numbers[1:] else ''}{job_names(numbers)} {reason}"
        for reason, numbers in reasons.items()
    ]
    if len(lines) > TOLD:
        title = f"{len(tally.refused):,} refused; they stay marked"
        desk.app.push_screen(TextDialog(title, "\n".join(lines)))
        return
    for line in lines:
        desk.show_error(line)


def job_names(numbers: Sequence[int]) -> str:
    """Return the first of them by name, and how many more there are."""
    shown = ", ".join(f"D-{number}" for number in numbers[:TOLD])
    return shown + (f" and {len(numbers) - TOLD:,} more" if numbers[TOLD:] else "")


def _show(desk: BaseScreen, shown: ProgressDialog) -> None:
    desk.app.push_screen(shown)
