"""Text rendering of job statuses, runs and results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from draftsman.formats import times
from draftsman.formats.amounts import format_size
from draftsman.ids import actor_name, job_name
from draftsman.jobs.job import TERMINAL, Status
from draftsman.jobs.retries import ErrorClass
from draftsman.jobs.runs.run import MEANINGS, RunStatus
from draftsman.jobs.status_display import Meaning, display_of
from draftsman_tui.terminal.colors import STYLES
from draftsman_tui.terminal.output import line, one_line, styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.jobs.control.job_message import JobMessage
    from draftsman.jobs.details.wait_reason import WaitReason
    from draftsman.jobs.job import Job
    from draftsman.jobs.requests.attachments import JobAttachment
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.jobs.runs.run import Run
    from draftsman.jobs.runs.saved_data import CheckpointSummary, StepSummary
    from draftsman.runtime import Runtime


MAX_STEPS: Final = 20
"""Newest steps of a job to show."""


def type_text(job: Job) -> str:
    """Return the type of a job, its agent and its mode: `run_agent · agent tidy · mode fix`.

    Only jobs that run an agent have a mode. The first run of a job without an agent records that of
    the repository.
    """
    agent = f" · agent {job.agent}" if job.agent else ""
    if job.type != "run_agent":
        return f"{job.type}{agent} · mode {job.mode}" if agent else job.type
    if job.agent is None and job.status not in TERMINAL:
        agent = " · agent of its repository"
    return f"{job.type}{agent} · mode {job.mode}"


def submitted_text(job: SubmittedJob) -> str:
    """Return the job of a request, which job it replaces, and why it was skipped."""
    text = f"{job.name} {job.outcome}"
    if job.replaced is not None:
        text += f"; it replaces {job_name(job.replaced)}, which was canceled before its start"
    if job.outcome == "created" and job.status is Status.CANCELED:
        why = "a job that it waits for did not complete, or its group stopped or was canceled"
        text += f" and skipped: {why}"
    return text


def submitted_message(job: SubmittedJob) -> str:
    """Return the job of a request, and why it may wait for long."""
    return submitted_text(job) + (f"; {job.warning}" if job.warning is not None else "")


def status_text(
    status: Status, error_class: str | None = None, *, paused: bool = False, detail: bool = True
) -> Text:
    """Render a status; a denied job has a color of its own.

    `paused`: the job is shown as paused, with `detail` also its status.
    """
    display = display_of(status, denied=error_class == ErrorClass.DENIED)
    if paused:
        text = f"paused ({display.word})" if detail else "paused"
        return styled(text, STYLES[Meaning.WARNING])
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
        "due_in": reason.due_in,
        "paused": reason.paused,
    }


def run_text(
    run: Run, now: datetime | None = None, *, error: bool = True, style: str = "red"
) -> Text:
    """Render a run as a line: status, exit code, duration, start and error.

    `style` applies to the error and the status `failed`.
    """
    now = now or datetime.now(UTC)
    duration = times.span(((run.finished_at or now) - run.started_at).total_seconds())
    failed = run.status is RunStatus.FAILED
    status_style = style if failed else STYLES[MEANINGS[run.status]]
    error_text = f"  {one_line(run.error)}" if run.error and error else ""
    code = f"  exit {run.exit_code}" if run.exit_code is not None else ""
    return line(
        f"  .{run.ordinal:<3} ",
        styled(f"{run.status:<11}", status_style),
        f" {duration:>7}  started {times.ago(run.started_at, now)}{code}",
        styled(error_text, style),
    )


def steps_text(
    job_name: str, steps: Sequence[StepSummary], now: datetime | None = None
) -> list[Text]:
    """Render the newest steps as lines, newest first, and how to list the earlier steps."""
    lines = [
        line(
            styled(f"  {step.status:<8}", "green" if step.finished_at else "yellow"),
            styled(one_line(step.key), "bold"),
            f"  run .{step.run}  {times.ago(step.finished_at or step.created_at, now)}",
            "" if step.size is None else f"  {format_size(step.size)}",
        )
        for step in steps[:MAX_STEPS]
    ]
    if len(steps) > MAX_STEPS:
        command = f"draftsman show {job_name} --json | jq .steps"
        lines.append(styled(f"  earlier steps: {command}", "dim"))
    return lines


def checkpoint_text(checkpoint: CheckpointSummary, now: datetime | None = None) -> Text:
    """Render a checkpoint as a line: run, age, and sizes of the data and of the saved work."""
    work = checkpoint.work_size
    return styled(
        f"  run .{checkpoint.run}  {times.ago(checkpoint.created_at, now)}"
        f"  {format_size(checkpoint.size)} of data"
        + ("" if work is None else f", {format_size(work)} of work")
    )


def result_lines(job: Job) -> Iterator[Text]:
    """Yield the summary, the changes and the validation of a result, then its other fields.

    The agent's own `data` may name files on its worker, so it is only in the JSON output.
    """
    from draftsman.deliveries import result_text
    from draftsman_tui.terminal.value_format import fields

    result = job.result or {}
    texts = [
        *result_text.summary_lines(result),
        result_text.change_summary(result),
        result_text.validation_summary(result),
    ]
    yield from (styled(f"  {text_line}") for text in texts for text_line in text.splitlines())
    other_fields = result_text.unrendered_fields(result)
    command = f"draftsman show {job.name} --json"
    if other_fields.pop("data", None):
        yield styled(f"  data: {command} | jq .result.data", "dim")
    yield from (styled(f"  {text_line}") for text_line in fields(other_fields, command))


# Text rendering of the messages and attachments of people to a job.


def message_lines(messages: Sequence[JobMessage], status: Status) -> Iterator[Text]:
    """Yield sender, state and text of each message of a job with this status."""
    for message in messages:
        delivered = message.delivered_at is not None
        yield line(
            styled(f"  {message.ordinal}  ", "bold"),
            styled(message.sender_display_name or actor_name(message.sender), "bold"),
            f"  {times.ago(message.created_at)}  ",
            styled(delivery_text(message, status), "green" if delivered else "yellow"),
        )
        yield from (styled(f"     {part}") for part in message.text.splitlines())


def attachment_lines(attachments: Sequence[JobAttachment]) -> Iterator[Text]:
    """Yield the name and the state of each attachment of a job."""
    for item in attachments:
        source = f", with message {item.message}" if item.message else ""
        yield line(
            styled(f"  {item.ordinal}  ", "bold"),
            styled(item.name, "bold"),
            f"  {attachment_state(item)}{source}",
        )


def attachment_state(item: JobAttachment) -> str:
    """Return the size of an attachment, or why it has none."""
    if item.size is not None:
        return format_size(item.size)
    return f"refused: {item.reason}" if item.reason else "waits for its download"


def delivery_text(message: JobMessage, status: Status) -> str:
    """Return whether the agent has a message, in a few words."""
    if message.delivered_at is not None:
        return f"delivered in run .{message.run} {times.ago(message.delivered_at)}"
    if status in TERMINAL:
        return "not delivered: the job ended before; a retry gets it"
    if message.run is not None:
        return f"given to run .{message.run}; delivered with its next checkpoint"
    return "waits for the agent"
