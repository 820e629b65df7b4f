"""Text rendering of job statuses and runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from draftsman.domain.job import TERMINAL, Status
from draftsman.domain.retries.error_classes import ErrorClass
from draftsman.domain.text import humanize
from draftsman_tui.common import times
from draftsman_tui.common.output import line, one_line, styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.domain.job import Job
    from draftsman.domain.run import Run
    from draftsman.domain.wait_reason import WaitReason


STYLES: Final = {
    Status.SCHEDULED: "blue",
    Status.QUEUED: "cyan",
    Status.CLAIMED: "cyan",
    Status.RUNNING: "bold cyan",
    Status.WAITING_FOR_INPUT: "bold yellow",
    Status.WAITING_FOR_APPROVAL: "bold yellow",
    Status.RESUMED: "cyan",
    Status.RETRYING: "magenta",
    Status.COMPLETED: "green",
    Status.FAILED: "red",
    Status.DEAD_LETTER: "bold red",
    Status.CANCELED: "dim",
    Status.EXPIRED: "red",
}
DENIED: Final = "yellow"
"""Color of a denied job."""


def type_text(job: Job) -> str:
    """Return the type of a job, its agent and its mode: `run_agent · agent tidy · mode fix`.

    The first run of a job without an agent records that of the repository.
    """
    agent = f" · agent {job.agent}" if job.agent else ""
    if job.agent is None and job.type == "run_agent" and job.status not in TERMINAL:
        agent = " · agent of its repository"
    return f"{job.type}{agent} · mode {job.mode}"


def status_text(status: object, error_class: str | None = None) -> Text:
    """Render a status; a denied job has a color of its own."""
    name = str(status)
    if error_class == ErrorClass.DENIED:
        return styled(name, DENIED)
    return styled(humanize(name), STYLES.get(Status(name), "") if name in STYLES else "")


def reason_data(reason: WaitReason) -> dict[str, Any]:
    """Return the JSON object of a wait reason."""
    return {
        "status": reason.status,
        "reason": reason.reason,
        "text": reason.text,
        "next_step": reason.next_step,
        "due_in": reason.due_in,
    }


def run_text(
    run: Run, now: datetime | None = None, *, error: bool = True, style: str = "red"
) -> Text:
    """Render a run as a line: status, exit code, duration, start and error.

    `style` applies to the error and the status `failed`.
    """
    now = now or datetime.now(UTC)
    duration = times.span(((run.finished_at or now) - run.started_at).total_seconds())
    status_style = {"completed": "green", "failed": style, "running": "cyan"}.get(run.status, "")
    error_text = f"  {one_line(run.error)}" if run.error and error else ""
    code = f"  exit {run.exit_code}" if run.exit_code is not None else ""
    return line(
        f"  .{run.ordinal:<3} ",
        styled(f"{run.status:<11}", status_style),
        f" {duration:>7}  started {times.ago(run.started_at, now)}{code}",
        styled(error_text, style),
    )
