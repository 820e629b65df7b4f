"""Text rendering of submitted jobs, their statuses and wait reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from draftsman.formats.invisible import one_line
from draftsman.ids import job_name
from draftsman.jobs.job import Status
from draftsman.jobs.retries import ErrorClass
from draftsman.jobs.status_display import display_of
from draftsman_tui.terminal.colors import STYLES
from draftsman_tui.terminal.output import styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.jobs.details.wait_reason import WaitReason
    from draftsman.runtime import Runtime


def status_text(status: Status, error_class: str | None = None, *, paused: bool = False) -> Text:
    """Render a status; a denied job and one that is shown as paused have colors of their own."""
    display = display_of(status, denied=error_class == ErrorClass.DENIED, paused=paused)
    return styled(display.word, STYLES[display.meaning])


async def pause_text(rt: Runtime, number: int) -> str:
    """Return the person and reason of a pause, and how to resume the job; "" without a pause."""
    why = await rt.read_model.why(number)
    return f"{job_name(number)} is {one_line(why.text)}; {why.next_step}" if why.paused else ""


def reason_data(reason: WaitReason) -> dict[str, Any]:
    """Return the JSON object of a wait reason."""
    return {
        "status": reason.status,
        "reason": reason.reason,
        "text": reason.text,
        "next_step": reason.next_step,
        "needs": [
            {"question": need.question, "text": need.text, "next_step": need.next_step_in()}
            for need in reason.needs
        ],
        "due_in": reason.due_in,
        "paused": reason.paused,
        "dismissal": reason.dismissal,
        "retried_as": reason.retried_as,
    }
