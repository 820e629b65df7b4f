"""`show`: everything about one job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.domain.ids import actor_name
from draftsman.domain.job import TERMINAL, Job, Status
from draftsman.domain.messages import plain_text
from draftsman.domain.question import QuestionStatus
from draftsman.domain.retries.error_classes import ErrorClass
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.common import params, times
from draftsman_tui.common.artifact_text import file_text
from draftsman_tui.common.delivery_text import summary_lines
from draftsman_tui.common.event_text import missing_months
from draftsman_tui.common.job_text import DENIED, run_text, status_text
from draftsman_tui.common.output import as_data, hanging_indent, line, one_line, styled
from draftsman_tui.common.question_text import (
    answerers,
    choice_lines,
    deadline_text,
    detail_lines,
    escalation_text,
)
from draftsman_tui.common.value_format import fields, sum_usage, usage_lines

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from draftsman.domain.answer import Answer
    from draftsman.domain.event import Event
    from draftsman.domain.ids import JobRef
    from draftsman.domain.question import Question
    from draftsman.domain.run import Run
    from draftsman.domain.wait_reason import WaitReason
    from draftsman.services.jobs.read_model import RetryLink

LINKS: Final = 6
"""Jobs of a chain that are named."""

TOLD = 200
"""Deliveries of a job that are counted."""
OPEN: Final = QuestionStatus.OPEN
FAILING: Final = frozenset({Status.RETRYING, Status.FAILED, Status.DEAD_LETTER})
"""Statuses that the last error has brought about; in others it is one of the past."""
APPLIED: Final = "sandbox_applied"
"""Kind of the event that says how a run was confined."""
JOINED: Final = "request_joined"
"""Kind of the event that a request with the subject of a live job leaves."""


@command("show", examples=("draftsman show D-142", "draftsman show D-142 --json | jq .result"))
@click.argument("job", type=params.JOB)
async def show(app: App, job: JobRef) -> None:
    """Show everything about a job.

    Its request and what it waits for, its runs, questions, answers, deliveries, files and result.
    """
    async with app.runtime(read_only=True) as rt:
        number = await number_of(rt, job)
        found = await rt.read_model.job(number)
        runs = await rt.read_model.runs(number)
        questions, answers = await rt.questions.of_job(number)
        files = await rt.checkpoints.artifacts(number)
        why = await rt.read_model.why(number)
        chain = await rt.read_model.chain(number)
        archived = await rt.archives.of_job(number)
        told = await rt.outbox.all(number, limit=TOLD)
        events = [
            *await rt.read_model.job_events(number),
            *await rt.read_model.latest_job_events(number),
        ]
        asked = {q.ordinal: await answerers(rt, q) for q in questions if q.status is OPEN}
    sandbox = next((one.payload for one in reversed(events) if one.kind == APPLIED), None)
    joined = {one.id: one for one in events if one.kind == JOINED}.values()
    if app.json:
        parts = {"runs": runs, "questions": questions, "answers": answers, "artifacts": files}
        parts |= {"joined": [one.payload | {"at": one.created_at} for one in joined]}
        parts |= {"archives": archived, "deliveries": told, "chain": chain}
        parts |= {"sandbox": sandbox}
        parts |= {"waits": None if found.status in TERMINAL else why}
        app.out.document(as_data(found) | as_data(parts))
        return
    app.out.print(
        *_head(found, why, chain),
        *(_pair("events", one) for one in missing_months(archived)),
        *([_pair("sandbox", _sandbox(sandbox))] if sandbox else []),
        *_section("Request", _request(found)),
        *_section("Joined by", [one for event in joined for one in _joined(event)]),
        *_section("Runs", list(_runs(found, runs))),
        *_section("Questions", [one for q in questions for one in _question(q, answers, asked)]),
        *_section("Told", summary_lines(told)),
        *_section("Files", [file_text(one) for one in files]),
        *_section("Result", _result(found)),
    )


def _sandbox(applied: dict[str, Any]) -> str:
    """Return the newest run's confinement in a line."""
    network = "with network" if applied.get("network") else "no network"
    return f"{applied.get('mode')} · {network} · uid {applied.get('uid')}"


def _head(job: Job, why: WaitReason, chain: Sequence[RetryLink]) -> Iterator[Text | Table]:
    yield line(
        styled(job.name, "bold"),
        f"  {one_line(job.ticket_title or job.type)}  ",
        status_text(job.status, job.error_class),
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
        yield _pair("cancel", f"by {actor_name(job.cancel_requested_by)}{reason}")
    if job.error_class == ErrorClass.DENIED:
        yield _pair("decision", str(job.last_error), DENIED)
    elif job.last_error:
        error = f"{job.last_error} ({job.error_class or 'unclassified'})"
        if job.status in FAILING:
            yield _pair("error", error, "red")
        else:
            yield _pair("earlier", f"previous attempt: {error}", "dim")
    if job.finished_at:
        yield _pair("ended", times.ago(job.finished_at))
    if job.status is Status.EXPIRED:
        yield _pair("expired", f"{why.text}; {why.then}", "red")
    elif job.status not in TERMINAL:
        yield _pair("waits", f"{why.text}; {why.then}")


def _chain(job: Job, chain: Sequence[RetryLink]) -> str:
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
        yield styled("")
        yield styled(title, "bold underline")
        yield from lines


def _request(job: Job) -> list[Text]:
    text = (job.ticket_text or "").strip("\n")
    lines = [styled(f"  {one}") for one in text.splitlines()]
    rest = {name: value for name, value in job.payload.items() if name != "repo"}
    return lines + _fields(job, rest | ({"overrides": job.overrides} if job.overrides else {}))


def _joined(event: Event) -> Iterator[Text]:
    """Yield a request that joined the live job: who asked, when, and for what."""
    asked = event.payload
    who = f"{asked.get('name') or asked.get('requester')} ({asked.get('source')})"
    yield line(styled(f"  {who}", "bold"), f"  {times.ago(event.created_at)}")
    said = str(asked.get("text") or asked.get("title") or "")
    yield from (styled(f"    {one}") for one in said.strip("\n").splitlines())


def _result(job: Job) -> list[Text]:
    """Return what a job made in words, then its other fields.

    An agent's own data names files of its worker: it is in the JSON document alone.
    """
    result = job.result or {}
    texts = [
        *plain_text.summary_lines(result),
        plain_text.change_summary(result),
        plain_text.validation_summary(result),
    ]
    lines = [styled(f"  {one}") for text in texts for one in text.splitlines()]
    others = plain_text.unrendered_fields(result)
    data = others.pop("data", None)
    if data:
        lines.append(styled(f"  data: draftsman show {job.name} --json | jq .result.data", "dim"))
    return lines + _fields(job, others)


def _fields(job: Job, values: dict[str, Any]) -> list[Text]:
    return [styled(f"  {one}") for one in fields(values, f"draftsman show {job.name} --json")]


def _runs(job: Job, runs: Sequence[Run]) -> Iterator[Text]:
    """Yield each run with what it used, and the sum of several."""
    style = "red" if job.status in FAILING else "dim"
    for run in runs:
        yield run_text(run, style=style)
        if run.usage:
            yield styled(f"       {usage_lines(run.usage)}", "dim")
    if sum(bool(run.usage) for run in runs) > 1:
        yield styled(f"  all  {usage_lines(sum_usage(run.usage for run in runs))}", "dim")


def _question(
    question: Question, answers: Sequence[Answer], asked: Mapping[int, str]
) -> Iterator[Text]:
    how = question.resolution or {}
    ended = how.get("outcome", "open")
    said = how.get("value") or how.get("text")
    by = ", ".join(how.get("by", ()))
    yield line(
        styled(f"  {question.name} ", "bold"),
        styled(ended, "yellow" if ended == "open" else "green"),
        f"  {one_line(question.text)}",
    )
    if question.ordinal in asked:
        yield styled(f"    for {asked[question.ordinal]} · {deadline_text(question)}", "yellow")
        yield from (line("  ", one) for one in (*detail_lines(question), *choice_lines(question)))
        if question.freeform_allowed:
            yield styled(f"    {'or ' if question.choices else ''}free text", "dim")
    elif question.escalated_at:
        yield styled(f"    {escalation_text(question)}", "yellow")
    if said or by:
        why = f": {how['reason']}" if how.get("reason") else ""
        value = f"{one_line(str(said))}, " if said else ""
        yield styled(f"    → {value}by {by or how.get('via')}{why}")
    for answer in answers:
        if answer.question == question.ordinal and not answer.accepted:
            yield styled(f"    refused from {answer.voter}: {answer.reason}", "dim")


def _pair(name: str, value: str, style: str = "") -> Table:
    return hanging_indent(line(styled(f"  {name:<9} ", "dim"), styled(one_line(value), style)), 12)
