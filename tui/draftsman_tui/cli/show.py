"""`show`: everything about one job."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.domain.job import TERMINAL, Job
from draftsman_tui.cli import params, times
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.archives import left
from draftsman_tui.cli.artifacts import size
from draftsman_tui.cli.deliveries import brief
from draftsman_tui.cli.jobs import status_text
from draftsman_tui.cli.output import as_data, hang, line, one_line, words
from draftsman_tui.cli.questions import escalated

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from draftsman.domain.answer import Answer
    from draftsman.domain.ids import JobRef
    from draftsman.domain.question import Question
    from draftsman.domain.run import Run
    from draftsman.domain.why import Why
    from draftsman.services.inspect import Link

LINKS: Final = 6
"""Jobs of a chain that are named."""

TOLD = 200
"""Deliveries of a job that are counted."""


APPLIED: Final = "sandbox_applied"
"""Kind of the event that says how a run was confined."""


@command("show", examples=("draftsman show D-142", "draftsman show D-142 --json | jq .result"))
@click.argument("job", type=params.JOB)
async def show(app: App, job: JobRef) -> None:
    """Show everything about a job.

    Its request and what it waits for, its runs, questions, answers, deliveries, files and result.
    """
    async with app.runtime(read_only=True) as rt:
        number = await number_of(rt, job)
        found = await rt.inspect.job(number)
        runs = await rt.inspect.runs(number)
        questions, answers = await rt.questions.of_job(number)
        files = await rt.checkpoints.artifacts(number)
        why = await rt.inspect.why(number)
        chain = await rt.inspect.chain(number)
        archived = await rt.archives.of_job(number)
        told = await rt.outbox.all(number, limit=TOLD)
        events = [*await rt.inspect.trail(number), *await rt.inspect.trail_end(number)]
    sandbox = next((one.payload for one in reversed(events) if one.kind == APPLIED), None)
    if app.json:
        parts = {"runs": runs, "questions": questions, "answers": answers, "artifacts": files}
        parts |= {"archives": archived, "deliveries": told, "chain": chain}
        parts |= {"sandbox": sandbox}
        parts |= {"waits": None if found.status in TERMINAL else why}
        app.out.document(as_data(found) | as_data(parts))
        return
    app.out.print(
        *_head(found, why, chain),
        *(_pair("events", one) for one in left(archived)),
        *([_pair("sandbox", _sandbox(sandbox))] if sandbox else []),
        *_section("Request", _request(found)),
        *_section("Runs", [run_text(run) for run in runs]),
        *_section("Questions", [one for q in questions for one in _question(q, answers)]),
        *_section("Told", brief(told)),
        *_section("Files", [file_text(one) for one in files]),
        *_section("Result", _json_lines(found.result)),
    )


def _sandbox(applied: dict[str, Any]) -> str:
    """Return the newest run's confinement in a line."""
    network = "with network" if applied.get("network") else "no network"
    return f"{applied.get('mode')} · {network} · uid {applied.get('uid')}"


def _head(job: Job, why: Why, chain: Sequence[Link]) -> Iterator[Text | Table]:
    yield line(
        words(job.name, "bold"),
        f"  {one_line(job.ticket_title or job.type)}  ",
        status_text(job.status),
    )
    agent = f" · agent {job.agent}" if job.agent else ""
    yield _pair("type", f"{job.type}{agent} · mode {job.mode}")
    if job.repo:
        source = job.payload.get("repo")
        place = source.get("source") if isinstance(source, dict) else None
        at = f" · {place}" if place and place != job.repo else ""
        yield _pair("repo", f"{job.repo}{at}")
    who = job.invoker_display_name or job.invoker_id
    yield _pair("asked by", f"{who} ({job.source}), {times.ago(job.created_at)}")
    yield _pair("queue", f"{job.queue} · priority {job.priority} · key {job.idempotency_key}")
    yield _pair(
        "spent",
        f"attempts {job.attempts} of {job.max_attempts} · retries {job.retry_count}"
        f" of {job.max_retries} · runs {job.run_count}",
    )
    if job.tags:
        yield _pair("tags", ", ".join(job.tags))
    if job.requested_skills:
        yield _pair("skills", ", ".join(job.requested_skills))
    if len(chain) > 1:
        yield _pair("chain", _chain(job, chain))
    if job.cancel_requested_by:
        reason = f": {job.cancel_reason}" if job.cancel_reason else ""
        yield _pair("cancel", f"by {job.cancel_requested_by}{reason}")
    if job.last_error:
        yield _pair("error", f"{job.last_error} ({job.error_class or 'unclassified'})", "red")
    if job.finished_at:
        yield _pair("ended", times.ago(job.finished_at))
    if job.status not in TERMINAL:
        yield _pair("waits", f"{why.text}; {why.then}")


def _chain(job: Job, chain: Sequence[Link]) -> str:
    """Return what the job is a retry of, newest first, and what followed it."""
    before = [one.name for one in chain if one.chain_length <= job.chain_length]
    after = [
        f"{one.name} {one.status.replace('_', ' ')}"
        for one in chain
        if one.chain_length > job.chain_length
    ]
    text = " <- ".join(_few(before[::-1]))
    return f"{text} · then {', '.join(_few(after))}" if after else text


def _few(names: list[str]) -> list[str]:
    """Return the names without the middle of a long list."""
    if len(names) <= LINKS:
        return names
    return [*names[: LINKS - 2], f"… {len(names) - LINKS + 1} more …", names[-1]]


def _section(title: str, lines: Sequence[Text]) -> Iterator[Text]:
    if lines:
        yield words("")
        yield words(title, "bold underline")
        yield from lines


def _request(job: Job) -> list[Text]:
    text = (job.ticket_text or "").strip("\n")
    lines = [words(f"  {one}") for one in text.splitlines()]
    rest = {name: value for name, value in job.payload.items() if name != "repo"}
    return lines + _json_lines(rest) + _json_lines(job.overrides and {"overrides": job.overrides})


def run_text(run: Run, now: datetime | None = None, *, error: bool = True) -> Text:
    """Return a run on one line: how it ended, how long it took, when it began, its error."""
    now = now or datetime.now(UTC)
    took = times.span(((run.finished_at or now) - run.started_at).total_seconds())
    style = {"completed": "green", "failed": "red", "running": "cyan"}.get(run.status, "")
    wrong = f"  {one_line(run.error)}" if run.error and error else ""
    code = f"  exit {run.exit_code}" if run.exit_code is not None else ""
    return line(
        f"  .{run.ordinal:<3} ",
        words(f"{run.status:<11}", style),
        f" {took:>7}  started {times.ago(run.started_at, now)}{code}",
        words(wrong, "red"),
    )


def _question(question: Question, answers: Sequence[Answer]) -> Iterator[Text]:
    how = question.resolution or {}
    ended = how.get("outcome", "open")
    said = how.get("value") or how.get("text")
    by = ", ".join(how.get("by", ()))
    yield line(
        words(f"  {question.name} ", "bold"),
        words(ended, "yellow" if ended == "open" else "green"),
        f"  {one_line(question.text)}",
    )
    if question.escalated_at:
        yield words(f"    {escalated(question)}", "yellow")
    if said or by:
        why = f": {how['reason']}" if how.get("reason") else ""
        value = f"{one_line(str(said))}, " if said else ""
        yield words(f"    → {value}by {by or how.get('via')}{why}")
    for answer in answers:
        if answer.question == question.ordinal and not answer.accepted:
            yield words(f"    refused from {answer.voter}: {answer.reason}", "dim")


def file_text(one: Any) -> Text:
    """Return a file that a run left on one line."""
    return line(words(f"  {one.name}", "bold"), f"  {one.kind}  {size(one.size)}  run .{one.run}")


def _json_lines(value: Any) -> list[Text]:
    if not value:
        return []
    text = json.dumps(as_data(value), indent=2, ensure_ascii=False)
    return [words(f"  {one}") for one in text.splitlines()]


def _pair(name: str, value: str, style: str = "") -> Table:
    return hang(line(words(f"  {name:<9} ", "dim"), words(one_line(value), style)), 12)
