"""The runs of a job, and what they saved: steps, checkpoints, artifacts and the result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from draftsman.deliveries import result_text
from draftsman.deliveries.documents.document import Command
from draftsman.deliveries.documents.plain import print_plain
from draftsman.deliveries.documents.shown_results import DETAILS, shown_result
from draftsman.formats import times
from draftsman.formats.amounts import format_size
from draftsman.ids import run_name, run_text, worker_name
from draftsman.jobs.details.job_details import MAX_STEPS, JobDetails
from draftsman.jobs.details.sections.facts import FAILING
from draftsman.jobs.details.sections.section import (
    Entry,
    Line,
    LineSpan,
    Reader,
    SectionText,
    faint,
    flat,
    name,
)
from draftsman.jobs.job import Job, Status
from draftsman.jobs.retries import error_class_text
from draftsman.jobs.runs.run import MEANINGS, Run, RunStatus
from draftsman.jobs.runs.saved_data import Artifact, StepSummary
from draftsman.jobs.status_display import Meaning
from draftsman.value_format import fields, usage_lines

EARLIER_STEPS: Final = "earlier steps"
"""The entry of the steps that are not listed."""


def runs(details: JobDetails, reader: Reader) -> Iterator[Entry]:
    """Yield the result, the times, the error and the usage of each run."""
    for run in details.runs:
        yield Entry(run_name(run.job, run.ordinal), tuple(_run(run, details, reader)))


def _run(run: Run, details: JobDetails, reader: Reader) -> Iterator[Line]:
    error = Meaning.FAILURE if details.job.status in FAILING else Meaning.NEUTRAL
    meaning = error if run.status is RunStatus.FAILED else MEANINGS[run.status]
    seconds = ((run.finished_at or reader.now) - run.started_at).total_seconds()
    number, status, length, gap = f"{run_text(run.ordinal):<7}", f"{run.status:<11}", ">7", "  "
    if not reader.types_commands:  # a page has no columns of characters
        number, status, length, gap = f"Run {run.ordinal}", str(run.status), "", " · "
    yield (
        name(f"{number} "),
        LineSpan(status, meaning),
        f"{gap.rstrip()} {times.span(seconds):{length}}{gap}started ",
        reader.ago(run.started_at),
        "" if run.exit_code is None else f"{gap}exit {run.exit_code}",
    )
    end: Line = (faint(", heartbeat "), reader.ago(run.heartbeat_at, Meaning.NEUTRAL))
    if run.finished_at is not None:
        end = (faint(" to "), reader.clock(run.finished_at, Meaning.NEUTRAL))
    start = reader.clock(run.started_at, Meaning.NEUTRAL)
    yield (faint(f"worker {worker_name(run.worker_id)}, "), start, *end)
    if run.error:
        kind = f" ({error_class_text(run.error_class)})" if run.error_class else ""
        yield (LineSpan(f"{flat(run.error)}{kind}", error),)
    if run.usage:
        yield (faint(flat(usage_lines(run.usage))),)


def steps(details: JobDetails, reader: Reader) -> Iterator[Entry]:
    """Yield the newest steps, newest first, and how to list the earlier steps."""
    for step in details.steps[:MAX_STEPS]:
        meaning = Meaning.WAITING if step.finished_at is None else Meaning.SUCCESS
        line: Line = (
            LineSpan(f"{step.status:<8}", meaning),
            name(flat(step.key)),
            f"  {run_text(step.run)}  ",
            reader.ago(step.finished_at or step.created_at),
            "" if step.size is None else f"  {format_size(step.size)}",
        )
        yield Entry("", ((*line, *_position(step, details)),))
    if len(details.steps) > MAX_STEPS:
        command = f": draftsman show {details.job.name} --json | jq .steps"
        where = command if reader.types_commands else " are not shown here"
        text = faint(f"{EARLIER_STEPS}{'' if reader.has_keys else where}")
        yield Entry(EARLIER_STEPS if reader.has_keys else "", ((text,),))


def _position(step: StepSummary, details: JobDetails) -> Line:
    """Return a mark of where the job is: in its unfinished steps, else after the newest step."""
    is_pending = step.finished_at is None
    is_after = step is details.steps[0] and all(other.finished_at for other in details.steps)
    if details.is_over or not (is_pending or is_after):
        return ()
    if details.job.status is Status.RUNNING:
        return (_mark("now" if is_pending else "now after it"),)
    return (_mark(f"the next run continues {'here' if is_pending else 'after it'}"),)


def _mark(text: str) -> LineSpan:
    return LineSpan(f"  ← {text}", Meaning.ACTIVE)


def checkpoints(details: JobDetails, reader: Reader) -> Iterator[Entry]:
    """Yield the run and the sizes of each checkpoint."""
    for checkpoint in details.checkpoints:
        work = checkpoint.work_size
        is_next = checkpoint is details.checkpoints[0] and not details.is_over
        line: Line = (
            f"{run_text(checkpoint.run)}  ",
            reader.ago(checkpoint.created_at),
            f"  {format_size(checkpoint.size)} of data",
            "" if work is None else f", {format_size(work)} of work",
            _mark("the next run continues from here") if is_next else "",
        )
        yield Entry("", (line,))


def artifacts(details: JobDetails, reader: Reader) -> Iterator[Entry]:
    """Yield the name, kind and size of each artifact."""
    for artifact in details.artifacts:
        run = f"  {run_text(artifact.run)}  "
        line: Line = (
            LineSpan(flat(artifact.name), is_name=True, url=reader.artifact_url(artifact)),
            f"  {artifact.kind}  {format_size(artifact.size)}{run}",
            reader.ago(artifact.created_at, Meaning.NEUTRAL),
        )
        if is_empty_patch(artifact):
            so_far = "" if details.is_over else " so far"
            line = (name(flat(artifact.name)), faint(f"  no changes{so_far}{run}"), line[-1])
        yield Entry(f"{artifact.run}/{artifact.name}", (line,))


def is_empty_patch(artifact: Artifact) -> bool:
    """Return whether an artifact only states that its run changed nothing."""
    return artifact.kind == "patch" and artifact.size == 0


def result(details: JobDetails, reader: Reader) -> Iterator[SectionText]:
    """Yield the result of the job."""
    yield from result_parts(details.job, has_keys=reader.has_keys)


def result_parts(job: Job, *, has_keys: bool = False) -> Iterator[SectionText]:
    """Yield the summary, the changes and the validation of a result, then its other fields.

    The agent's own `data` may name files on its worker, so it is only in the JSON output.
    `has_keys` is as for `Reader`.
    """
    values = job.result or {}
    for text in result_text.summary_lines(values):
        yield SectionText(text, is_markdown=True)
    texts = [result_text.change_summary(values), result_text.validation_summary(values)]
    if summary := "\n".join(filter(None, texts)):
        yield SectionText(summary)
    command = f"draftsman show {job.name} --json"
    if shown := shown_result(values, job.name, Command(command), DETAILS):
        yield SectionText(print_plain(shown), shown)
    other_fields = result_text.unrendered_fields(values)
    where = "in the JSON of the job" if has_keys else f"{command} | jq .result.data"
    data = [f"data: {where}"] if other_fields.pop("data", None) else []
    if lines := [*data, *fields(other_fields, command)]:
        yield SectionText("\n".join(lines), values=other_fields)
