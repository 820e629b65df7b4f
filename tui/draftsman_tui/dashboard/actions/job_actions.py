"""What is done to jobs, by the services that the command line uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.domain.job import TERMINAL, Status
from draftsman.domain.text import first_line
from draftsman.errors import Refused
from draftsman.services.jobs.job_control import CancelResult
from draftsman_tui.dashboard.actions.bulk import (
    TOLD,
    confirm_bulk,
    job_names,
    report_bulk,
    run_bulk,
)
from draftsman_tui.dashboard.dialogs.text_dialog import TextDialog
from draftsman_tui.dashboard.dialogs.typed_confirm_dialog import TypedConfirmDialog

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman_tui.dashboard.screens.base import BaseScreen


async def cancel(desk: BaseScreen, text: str) -> None:
    """End the chosen jobs; what follows is the reason."""
    numbers, ended = await _live(desk)
    note = f"{ended} reason: {text}" if text else f"{ended} What they did is kept."
    about = await _about(desk, numbers, note.strip())
    if await confirm_bulk(desk, "Cancel", numbers, about, of=len(desk.jobs())):
        await _end(desk, numbers, text, force=False)


async def cancel_force(desk: BaseScreen, text: str) -> None:
    """End the chosen jobs at once; it is to be typed which."""
    numbers, ended = await _live(desk)
    one = len(numbers) == 1
    question = f"End {job_names(numbers)} without waiting for the worker?"
    note = f"{ended} What its run still writes is refused; what it did outside stays as it is."
    word = f"D-{numbers[0]}" if one else f"cancel {len(numbers)}"
    if await desk.ask(
        TypedConfirmDialog(question, await _about(desk, numbers, note.strip()), word)
    ):
        await _end(desk, numbers, text, force=True)


async def why(desk: BaseScreen, text: str) -> None:
    """Say what the job waits for."""
    number = desk.jobs()[0]
    found = await desk.rt.read_model.why(number)
    await desk.app.push_screen(
        TextDialog(f"D-{number} {found.status}", f"{found.text}\n\n{found.then}")
    )


async def diff(desk: BaseScreen, text: str) -> None:
    """Show the changes that the job made."""
    await desk.changes(desk.jobs()[0])


async def copy(desk: BaseScreen, text: str) -> None:
    """Copy the ids of the chosen rows, by the terminal's own clipboard (OSC 52)."""
    keys = desk.ids
    if not keys:
        raise Refused("there is nothing to copy")
    desk.app.copy_to_clipboard(" ".join(keys))
    desk.show_message(f"copied {', '.join(keys[:TOLD])}" + (", …" if keys[TOLD:] else ""))


async def patch(rt: Runtime, number: int, run: int | None = None) -> str | None:
    """Return the patch of a run, or the newest of the job; None: there is none."""
    found = await rt.checkpoints.patch(number, run)
    return (
        None if found is None else (await rt.checkpoints.content(found)).decode("utf-8", "replace")
    )


async def _live(desk: BaseScreen) -> tuple[list[int], str]:
    """Return the chosen jobs that can be ended, and what to say of the others.

    Raises Refused where all have ended.
    """
    stands = {
        number: (await desk.rt.read_model.status_and_version(number))[0] for number in desk.jobs()
    }
    ended = [number for number, status in stands.items() if status in TERMINAL]
    live = [number for number in stands if number not in ended]
    if not live and len(ended) == 1:
        how = str(stands[ended[0]]).replace("_", " ")
        raise Refused(f"D-{ended[0]} is {how} already; nothing to cancel")
    have = f"{job_names(ended)} {'have' if ended[1:] else 'has'} ended"
    if not live:
        raise Refused(f"{have}; nothing to cancel")
    return live, f"{have}." if ended else ""


async def _end(desk: BaseScreen, numbers: list[int], reason: str, *, force: bool) -> None:
    done: list[CancelResult] = []

    async def end(number: int) -> None:
        done.append(
            await desk.rt.job_control.cancel(number, desk.actor, reason or None, force=force)
        )

    tally = await run_bulk(desk, "Canceling", numbers, end)
    asked = [one.number for one in done if one.requested]
    if asked:
        desk.show_message(f"{job_names(asked)} told to stop")
    tally.done = [one.number for one in done if not one.requested]
    report_bulk(desk, tally, "canceled")


async def _about(desk: BaseScreen, numbers: list[int], note: str) -> str:
    """Say of a single job what it is and what it does just now."""
    if len(numbers) > 1:
        return note
    job = await desk.rt.read_model.job(numbers[0])
    title = first_line(job.ticket_title or job.type, 60)
    stop = "; it is told to stop" if job.status is Status.RUNNING else ""
    return f"{title}: {str(job.status).replace('_', ' ')}{stop}. {note}"
