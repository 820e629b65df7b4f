"""Job commands: cancel, pause, message to the agent, wait reason, diff and copy."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from draftsman.errors import Refused
from draftsman.ids import job_name
from draftsman.jobs.control.service.control import CancelResult
from draftsman.jobs.job import TERMINAL, Status
from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
from draftsman.text import first_line, humanize
from draftsman_tui.changes.local_changes import apply_patch, patch_of
from draftsman_tui.changes.merge_request import published_pull_request, request_merge
from draftsman_tui.changes.published_work import check_out, published_work
from draftsman_tui.changes.user_repository import UserRepository
from draftsman_tui.dashboard.dialogs.confirm_dialog import ConfirmDialog, TypedConfirmDialog
from draftsman_tui.dashboard.dialogs.prompt_dialog import PromptDialog
from draftsman_tui.dashboard.dialogs.text_dialog import TextDialog
from draftsman_tui.dashboard.frame.bulk import (
    MAX_LISTED,
    confirm_bulk,
    job_names,
    report_held,
    run_bulk,
)

if TYPE_CHECKING:
    from draftsman.jobs.control.job_message import SentMessage
    from draftsman_tui.dashboard.frame.base_screen import BaseScreen


async def cancel(screen: BaseScreen, text: str) -> None:
    """Cancel the selected jobs; `text` is the reason."""
    numbers, finished_note = await _cancelable(screen)
    note = f"{finished_note} Reason: {text}" if text else f"{finished_note} Work so far is kept."
    about = await _cancel_note(screen, numbers, note.strip())
    if await confirm_bulk(screen, "Cancel", numbers, about, of=len(screen.jobs())):
        await _cancel(screen, numbers, text, force=False)


async def cancel_force(screen: BaseScreen, text: str) -> None:
    """Cancel the selected jobs at once, after typed confirmation."""
    numbers, finished_note = await _cancelable(screen)
    question = f"Cancel {job_names(numbers)} without waiting for the worker?"
    note = f"{finished_note} Later writes of the run are rejected; external effects stay."
    word = job_name(numbers[0]) if len(numbers) == 1 else f"cancel {len(numbers)}"
    if await screen.ask(
        TypedConfirmDialog(question, await _cancel_note(screen, numbers, note.strip()), word)
    ):
        await _cancel(screen, numbers, text, force=True)


async def pause(screen: BaseScreen, text: str) -> None:
    """Pause the selected job; asks for the reason unless it is given."""
    number = screen.jobs()[0]
    if not text:
        await screen.rt.job_control.check_pause(number, screen.actor)
    dialog = PromptDialog(f"Reason for the pause of {job_name(number)}?", "the API is down")
    if reason := text or await screen.ask(dialog):
        await screen.rt.job_control.pause(number, screen.actor, reason)
        screen.show_message(f"{job_name(number)} paused")


async def resume(screen: BaseScreen, text: str) -> None:
    """Continue the selected job."""
    number = screen.jobs()[0]
    await screen.rt.job_control.resume(number, screen.actor)
    screen.show_message(f"{job_name(number)} resumed")


async def why(screen: BaseScreen, text: str) -> None:
    """Show why the job waits, and what to do."""
    number = screen.jobs()[0]
    reason = await screen.rt.read_model.why(number)
    status = humanize(str(reason.status))
    await screen.app.push_screen(
        TextDialog(f"{job_name(number)} {status}", f"{reason.text}\n\n{reason.next_step}")
    )


async def diff(screen: BaseScreen, text: str) -> None:
    """Show the diff of the job."""
    await screen.show_diff(screen.jobs()[0])


async def copy(screen: BaseScreen, text: str) -> None:
    """Copy the ids of the selected rows to the terminal's clipboard (OSC 52)."""
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


async def merge(screen: BaseScreen, text: str) -> None:
    """Request the merge of the job's pull request, after confirmation."""
    number, url = await published_pull_request(screen.rt, screen.jobs()[0])
    question = f"Merge the pull request of {job_name(number)}?"
    note = f"{url}: an approval is asked for once its checks have passed."
    if await screen.ask(ConfirmDialog(question, note)) is True:
        submitted = await request_merge(screen.rt, number, url)
        screen.show_message(f"{submitted.name} asks for the merge once the checks have passed")


async def checkout(screen: BaseScreen, text: str) -> None:
    """Check out the branch of the job in the repository of a folder."""
    work = await published_work(screen.rt, screen.jobs()[0])
    repository = _repository(text)
    if await _confirmed(screen, f"Check out {work.branch}?", repository):
        head = await asyncio.to_thread(check_out, repository, work)
        screen.show_message(f"{repository.top}: branch {work.branch} at {head[:12]}")


async def apply(screen: BaseScreen, text: str) -> None:
    """Apply the changes of the job to the repository of a folder."""
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


async def tell(screen: BaseScreen, text: str) -> None:
    """Send a message to the agent of the selected job; asks for the text unless it is given."""
    number = screen.jobs()[0]
    if not text:
        await screen.rt.messages.check(number, screen.actor)

    async def send(message: str) -> SentMessage:
        return await screen.rt.messages.send(number, screen.actor, message)

    dialog = PromptDialog(f"Message to the agent of {job_name(number)}?", "use the v2 API", send)
    if (sent := await (send(text) if text else screen.ask(dialog))) is not None:
        screen.show_message(f"M{str(sent)[1:]}")
