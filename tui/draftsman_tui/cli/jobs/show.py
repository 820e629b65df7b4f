"""The `show` command: details of a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.formats import times
from draftsman.ids import actor_name, job_name
from draftsman.jobs.job import TERMINAL, Job, Status
from draftsman.jobs.retries import ErrorClass
from draftsman.jobs.status_display import Meaning
from draftsman.questions.question import MEANINGS
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.entities.artifacts import file_text
from draftsman_tui.entities.attention import attention_lines
from draftsman_tui.entities.deliveries import summary_lines
from draftsman_tui.entities.events import missing_months
from draftsman_tui.entities.jobs import (
    MAX_STEPS,
    attachment_lines,
    checkpoint_text,
    message_lines,
    reason_data,
    result_lines,
    run_text,
    status_text,
    steps_text,
    type_text,
)
from draftsman_tui.entities.questions import (
    answer_command,
    answerers,
    choice_lines,
    deadline_text,
    detail_lines,
    escalation_text,
)
from draftsman_tui.entities.workflows import group_data, parents_data, parents_text, tree_lines
from draftsman_tui.terminal import params
from draftsman_tui.terminal.colors import STYLES
from draftsman_tui.terminal.output import as_data, hanging_indent, line, one_line, styled
from draftsman_tui.terminal.value_format import fields, network_text, sum_usage, usage_lines

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from draftsman.events.event import Event
    from draftsman.ids import JobRef
    from draftsman.jobs.details.job_details import JobDetails
    from draftsman.jobs.details.wait_reason import WaitReason
    from draftsman.jobs.job_summary import Replacement, RetryLink
    from draftsman.jobs.runs.run import Run
    from draftsman.questions.question import Question
    from draftsman.schedules.schedule import Fire

MAX_CHAIN: Final = 6
"""Maximum number of jobs listed from a chain of retries."""
ALL_STEPS: Final = 1000
"""Maximum number of steps in the JSON output."""
FAILING: Final = frozenset({Status.RETRYING, Status.FAILED, Status.DEAD_LETTER})
"""Statuses caused by the last error; in any other status the error is from an earlier attempt."""


@command(
    "show",
    section="Jobs",
    examples=(
        "draftsman show D-142",
        "draftsman show D-142 --json | jq .result",
        "draftsman show D-142 --tree",
    ),
)
@click.argument("job", type=params.JOB)
@click.option("--tree", is_flag=True, help="Show the jobs that wait for it, directly or not.")
async def show(app: App, job: JobRef, tree: bool) -> None:
    """Show the details of a job.

    Includes its request, status, attachments, messages, runs, steps, checkpoints, questions,
    answers, deliveries, artifacts and result. With --tree, lists the jobs that wait for it, each
    under its newest parent.
    """
    if tree:
        await _show_tree(app, job)
        return
    async with app.runtime(read_only=app.json) as rt:
        steps = ALL_STEPS if app.json else MAX_STEPS + 1
        details = await rt.read_model.details(await number_of(rt, job), steps=steps)
        if app.json:
            app.out.document(_data(details))
            return
        answerers_by_question = {
            question.ordinal: answerers(rt, question, details.job.invoker_id)
            for question in details.open_questions
        }
        if details.open_questions:
            await rt.figures.record_views(details.open_questions, await rt.actor())
    lines = list(_lines(details, answerers_by_question))
    with app.out.paged():
        app.out.print(*lines)


def _data(details: JobDetails) -> dict[str, Any]:
    """Return the JSON object of a job: its columns, and everything that belongs to it."""
    group = details.group
    joined_requests = [
        event.payload | {"at": event.created_at} for event in details.joined_requests
    ]
    belonging = {
        "runs": details.runs,
        "questions": details.questions,
        "answers": details.answers,
        "artifacts": details.artifacts,
        "joined_requests": joined_requests,
        "steps": details.steps,
        "checkpoints": details.checkpoints,
        "messages": details.messages,
        "attachments": details.attachments,
        "archives": details.archives,
        "deliveries": details.deliveries,
        "retry_chain": details.retry_chain,
        "pull_request": details.family,
        "parents": parents_data(details.tree.parents),
        "group": None if group is None else group_data(group),
        "sandbox": details.sandbox,
        "occurrence": details.occurrence,
        "unique_key": details.replacement.key,
        "replaces": details.replacement.replaces,
        "replaced_by": details.replacement.replaced_by,
        "attention": [*details.attention.values()],
        "wait_reason": None if details.is_over else reason_data(details.wait_reason),
    }
    data: dict[str, Any] = as_data(details.job) | as_data(belonging)
    return data


def _lines(details: JobDetails, answerers: Mapping[int, str]) -> Iterator[Text | Table]:
    job = details.job
    yield from _head(job, details.wait_reason, details.retry_chain)
    yield from _cost(details.runs)
    if details.tree.parents:
        yield _pair("after", parents_text(details.tree.parents))
    if details.family is not None:
        yield _pair("pr state", details.family.text_of(job.number))
    if details.group is not None:
        yield _pair("group", f"{details.group.name}: {details.group.succeeded_text}")
    yield from _replacement(details.replacement)
    for text in missing_months(details.archives):
        yield _pair("events", text)
    if details.occurrence is not None:
        yield _pair("schedule", _occurrence(details.occurrence))
    if details.sandbox:
        yield _pair("sandbox", _sandbox(details.sandbox))
    yield from _section("Request", _request(job))
    yield from _section(
        "Joined requests", [text for event in details.joined_requests for text in _joined(event)]
    )
    yield from _section("Attachments", attachment_lines(details.attachments))
    yield from _section("Messages", message_lines(details.messages, job.status))
    yield from _section("Runs", _runs(job, details.runs))
    yield from _section("Steps", steps_text(job.name, details.steps))
    yield from _section("Checkpoints", map(checkpoint_text, details.checkpoints))
    yield from _section("Questions", _questions(details, answerers))
    yield from _section("Deliveries", summary_lines(details.deliveries, details.unserved))
    yield from _section(
        "Artifacts",
        [file_text(artifact, over=details.is_over) for artifact in details.artifacts],
    )
    yield from _section("Result", result_lines(job))


async def _show_tree(app: App, job: JobRef) -> None:
    async with app.runtime(read_only=True) as rt:
        tree = await rt.workflows.tree(await number_of(rt, job))
    if app.json:
        app.out.document(as_data(tree) | {"parents": parents_data(tree.parents)})
        return
    if tree.parents:
        app.out.print(styled(f"after {parents_text(tree.parents)}", "dim"))
    if tree.spawned_by is not None:
        app.out.print(styled(f"spawned by {job_name(tree.spawned_by)}", "dim"))
    app.out.print(*(text for _, text in tree_lines(tree)))


def _occurrence(fire: Fire) -> str:
    """Describe the occurrence that submitted the job."""
    return f"{fire.schedule} · due {times.in_zone(fire.due_at, fire.timezone)} {fire.timezone}"


def _sandbox(applied: dict[str, Any]) -> str:
    """Describe the sandbox of the newest run on a line."""
    network = network_text(applied.get("network"), "with network", "no network")
    return f"{applied.get('mode')} · {network} · uid {applied.get('uid')}"


def _queue(job: Job) -> str:
    concurrency = f" · concurrency key {job.concurrency_key}" if job.concurrency_key else ""
    return one_line(
        f"{job.queue} · priority {job.priority} · key {job.idempotency_key}{concurrency}"
    )


def _head(job: Job, why: WaitReason, chain: Sequence[RetryLink]) -> Iterator[Text | Table]:
    yield line(
        styled(job.name, "bold"),
        f"  {one_line(job.ticket_title or job.type)}  ",
        status_text(job.status, job.error_class, paused=why.shown_as_paused),
    )
    yield _pair("type", type_text(job))
    if job.repo:
        source = job.payload.get("repo")
        origin = source.get("source") if isinstance(source, dict) else None
        at = f" · {origin}" if origin and origin != job.repo else ""
        yield _pair("repo", f"{job.repo}{at}")
    requester = job.invoker_display_name or job.invoker_id
    yield _pair("requester", f"{requester} ({job.source}), {times.ago(job.created_at)}")
    yield _pair("queue", _queue(job))
    yield _pair(
        "attempts",
        f"{job.attempts} of {job.max_attempts} · retries {job.retry_count}"
        f" of {job.max_retries} · runs {job.run_count}",
    )
    yield from _labels(job)
    if len(chain) > 1:
        yield _pair("retries", _chain(job, chain))
    if job.cancel_requested_by:
        reason = f": {job.cancel_reason}" if job.cancel_reason else ""
        yield _pair("cancel", f"by {actor_name(job.cancel_requested_by)}{reason}")
    if job.error_class == ErrorClass.DENIED:
        yield _pair("decision", str(job.last_error), STYLES[Meaning.DENIED])
    elif job.last_error:
        error = f"{job.last_error} ({job.error_class or 'unclassified'})"
        if job.status in FAILING:
            yield _pair("error", error, "red")
        else:
            yield _pair("earlier", f"previous attempt: {error}", "dim")
    if job.finished_at:
        yield _pair("finished", times.ago(job.finished_at))
    if why.reason == "no_program":
        yield _pair("next", why.next_step)
    if job.status is Status.EXPIRED:
        yield _pair("expired", f"{why.text}; {why.next_step}", "red")
    elif job.status not in TERMINAL:
        yield _pair("waiting", f"{why.text}; {why.next_step}")


def _labels(job: Job) -> Iterator[Table]:
    if job.template:
        yield _pair("template", f"{job.template}@{job.template_version}")
    if job.tags:
        yield _pair("tags", ", ".join(job.tags))
    if job.pr_url:
        yield _pair("pr", job.pr_url)
    if job.requested_skills:
        yield _pair("skills", ", ".join(job.requested_skills))


def _cost(runs: Sequence[Run]) -> Iterator[Table]:
    """Yield the tokens and the cost of all runs, if any reported them."""
    if total := sum_usage(run.usage for run in runs):
        yield _pair("usage", usage_lines(total))


def _replacement(replacement: Replacement) -> Iterator[Table]:
    if replacement.key is not None:
        yield _pair("unique", replacement.key)
    if replacement.replaces is not None:
        yield _pair("replaces", job_name(replacement.replaces))
    if replacement.replaced_by is not None:
        yield _pair("replaced", f"by {job_name(replacement.replaced_by)}")


def _chain(job: Job, chain: Sequence[RetryLink]) -> str:
    """Describe the jobs that this job retries, newest first, and the retries that followed."""
    before = [link.name for link in chain if link.chain_length <= job.chain_length]
    after = [
        f"{link.name} {link.status.replace('_', ' ')}"
        for link in chain
        if link.chain_length > job.chain_length
    ]
    text = " <- ".join(_shorten(before[::-1]))
    return f"{text} · then {', '.join(_shorten(after))}" if after else text


def _shorten(names: list[str]) -> list[str]:
    """Replace the middle of a long list of names with a count."""
    if len(names) <= MAX_CHAIN:
        return names
    return [*names[: MAX_CHAIN - 2], f"… {len(names) - MAX_CHAIN + 1} more …", names[-1]]


def _section(title: str, lines: Iterable[Text]) -> Iterator[Text]:
    """Yield a title and lines, if there are any."""
    listed = list(lines)
    if listed:
        yield styled("")
        yield styled(title, "bold underline")
        yield from listed


def _request(job: Job) -> list[Text]:
    text = (job.ticket_text or "").strip("\n")
    lines = [styled(f"  {text_line}") for text_line in text.splitlines()]
    payload = {name: value for name, value in job.payload.items() if name != "repo"}
    if job.overrides:
        payload["overrides"] = job.overrides
    return lines + _fields(job, payload)


def _joined(event: Event) -> Iterator[Text]:
    """Yield the lines of a request that joined the live job: requester, time and text."""
    request = event.payload
    requester = f"{request.get('name') or request.get('requester')} ({request.get('source')})"
    yield line(styled(f"  {requester}", "bold"), f"  {times.ago(event.created_at)}")
    text = str(request.get("text") or request.get("title") or "")
    yield from (styled(f"    {text_line}") for text_line in text.strip("\n").splitlines())


def _fields(job: Job, values: dict[str, Any]) -> list[Text]:
    command = f"draftsman show {job.name} --json"
    return [styled(f"  {text_line}") for text_line in fields(values, command)]


def _runs(job: Job, runs: Sequence[Run]) -> Iterator[Text]:
    """Yield each run with its usage, and the total if several runs reported usage."""
    style = "red" if job.status in FAILING else "dim"
    for run in runs:
        yield run_text(run, style=style)
        if run.usage:
            yield styled(f"       {usage_lines(run.usage)}", "dim")
    if sum(bool(run.usage) for run in runs) > 1:
        total = usage_lines(sum_usage(run.usage for run in runs))
        yield styled(f"  all  {total}", "dim")


def _questions(details: JobDetails, answerers: Mapping[int, str]) -> Iterator[Text]:
    for question in details.questions:
        yield from _question(question, details, answerers.get(question.ordinal))
        for answer in details.answers:
            if answer.question == question.ordinal and not answer.accepted:
                yield styled(f"    rejected from {answer.voter}: {answer.reason}", "dim")


def _question(question: Question, details: JobDetails, names: str | None) -> Iterator[Text]:
    resolution = question.resolution or {}
    outcome = question.outcome
    answer_text = question.answer_text()
    voters = ", ".join(resolution.get("by", ()))
    yield line(
        styled(f"  {question.name} ", "bold"),
        styled(outcome, STYLES[MEANINGS[outcome]]),
        f"  {one_line(question.text)}",
    )
    if names is not None:
        yield styled(f"    for {names} · {deadline_text(question)}", "yellow")
        if asking := details.asking.get(question.ordinal):
            yield styled(f"    {asking}", "yellow")
        attention = details.attention.get((question.job, question.ordinal))
        for detail in (
            *attention_lines(attention),
            *detail_lines(question),
            *choice_lines(question),
        ):
            yield line("  ", detail)
        if question.freeform_allowed:
            yield styled(f"    {'or ' if question.choices else ''}free text", "dim")
        yield line("  ", answer_command(question))
    elif question.escalated_at:
        yield styled(f"    {escalation_text(question)}", "yellow")
    if answer_text or voters:
        reason = f": {resolution['reason']}" if resolution.get("reason") else ""
        text = f"{one_line(answer_text)}, " if answer_text else ""
        decider = question.rule_text or f"{voters or resolution.get('via')}{reason}"
        first, *others = f"{text}by {decider}".splitlines()
        yield styled(f"    → {first}")
        yield from (styled(f"      {other}") for other in others)


def _pair(name: str, value: str, style: str = "") -> Table:
    return hanging_indent(line(styled(f"  {name:<9} ", "dim"), styled(one_line(value), style)), 12)
