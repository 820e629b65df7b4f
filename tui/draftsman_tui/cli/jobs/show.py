"""The `show` command: details of a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.ids import actor_name, job_name
from draftsman.jobs.job import TERMINAL, Job, Source, Status
from draftsman.jobs.retries import ErrorClass
from draftsman.questions.question import QuestionStatus, asking_text
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.entities.artifacts import file_text
from draftsman_tui.entities.attention import attention_lines
from draftsman_tui.entities.deliveries import summary_lines
from draftsman_tui.entities.events import missing_months
from draftsman_tui.entities.jobs import (
    DENIED,
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
from draftsman_tui.terminal import params, times
from draftsman_tui.terminal.output import as_data, hanging_indent, line, one_line, styled
from draftsman_tui.terminal.value_format import fields, network_text, sum_usage, usage_lines

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from draftsman.attention.attention import QuestionAttention
    from draftsman.events.event import Event
    from draftsman.ids import JobRef
    from draftsman.jobs.details.wait_reason import WaitReason
    from draftsman.jobs.job_summary import Replacement, RetryLink
    from draftsman.jobs.runs.run import Run
    from draftsman.questions.answer import Answer
    from draftsman.questions.question import Question
    from draftsman.schedules.schedule import Fire

MAX_CHAIN: Final = 6
"""Maximum number of jobs listed from a chain of retries."""
ALL_STEPS: Final = 1000
"""Maximum number of steps in the JSON output."""
MAX_DELIVERIES: Final = 200
"""Maximum number of deliveries that the summary counts."""
OPEN: Final = QuestionStatus.OPEN
WITH_FILES: Final = frozenset({Source.SLACK, Source.TRELLO, Source.FORGE})
"""Sources of requests and messages that may have attachments."""
FAILING: Final = frozenset({Status.RETRYING, Status.FAILED, Status.DEAD_LETTER})
"""Statuses caused by the last error; in any other status the error is from an earlier attempt."""
APPLIED: Final = "sandbox_applied"
"""Event kind that records the sandbox of a run."""
JOINED: Final = "request_joined"
"""Event kind of a request that joined a live job with the same subject."""


@command(
    "show",
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
        number = await number_of(rt, job)
        details = await rt.read_model.job(number)
        runs = await rt.read_model.runs(number)
        questions, answers = await rt.questions.of_job(number)
        files = await rt.checkpoints.artifacts(number)
        steps, checkpoints = await rt.checkpoints.progress(
            number, limit=ALL_STEPS if app.json else MAX_STEPS + 1
        )
        why = await rt.read_model.why(number)
        chain = await rt.read_model.chain(number)
        replacement = await rt.read_model.replacement(number)
        archived = await rt.archives.of_job(number)
        is_scheduled = details.source is Source.SCHEDULE
        occurrence = await rt.schedules.of_job(number) if is_scheduled else None
        parents = await rt.workflows.parents(number)
        group = await rt.workflows.groups.of_job(number)
        messages = await rt.messages.of_job(number)
        sources = {details.source, *(message.source for message in messages)}
        with_files = sources & WITH_FILES or details.retry_of is not None
        attachments = await rt.attachments.of_job(number) if with_files else []
        followed = details.pr_url is not None or details.source is Source.FORGE
        family = await rt.forge_events.follow_ups.family(number) if followed else None
        deliveries = await rt.outbox.all(number, limit=MAX_DELIVERIES)
        unserved = await rt.outbox.unserved() if deliveries and not app.json else []
        events = [
            *await rt.read_model.job_events(number),
            *await rt.read_model.latest_job_events(number),
        ]
        answerers_by_question = {
            q.ordinal: await answerers(rt, q) for q in questions if q.status is OPEN
        }
        attention = await rt.acknowledgments.attention([number])
        asking: dict[int, str] = {}
        if answerers_by_question and not app.json:
            seen = await rt.questions.open_of([number])
            asking = {item.ordinal: asking_text(number, item.others) for item in seen}
            await rt.figures.record_views(seen, await rt.actor())
    over = details.status in TERMINAL
    sandbox = next((event.payload for event in reversed(events) if event.kind == APPLIED), None)
    join_events = {event.id: event for event in events if event.kind == JOINED}.values()
    if app.json:
        parts = {"runs": runs, "questions": questions, "answers": answers, "artifacts": files}
        parts |= {
            "joined_requests": [event.payload | {"at": event.created_at} for event in join_events]
        }
        parts |= {"steps": steps, "checkpoints": checkpoints, "messages": messages}
        parts |= {"attachments": attachments}
        parts |= {"archives": archived, "deliveries": deliveries, "retry_chain": chain}
        parts |= {"pull_request": family}
        parts |= {"parents": parents_data(parents), "group": group and group_data(group)}
        parts |= {"sandbox": sandbox, "occurrence": occurrence, "unique_key": replacement.key}
        parts |= {"replaces": replacement.replaces, "replaced_by": replacement.replaced_by}
        parts |= {"attention": [*attention.values()]}
        parts |= {"wait_reason": None if over else reason_data(why)}
        app.out.document(as_data(details) | as_data(parts))
        return
    lines = (
        *_head(details, why, chain),
        *_cost(runs),
        *([_pair("after", parents_text(parents))] if parents else []),
        *([_pair("pr state", family.text_of(number))] if family else []),
        *([_pair("group", f"{group.name}: {group.succeeded_text}")] if group else []),
        *_replacement(replacement),
        *(_pair("events", text) for text in missing_months(archived)),
        *([_pair("schedule", _occurrence(occurrence))] if occurrence else []),
        *([_pair("sandbox", _sandbox(sandbox))] if sandbox else []),
        *_section("Request", _request(details)),
        *_section("Joined requests", [text for event in join_events for text in _joined(event)]),
        *_section("Attachments", list(attachment_lines(attachments))),
        *_section("Messages", list(message_lines(messages, details.status))),
        *_section("Runs", list(_runs(details, runs))),
        *_section("Steps", steps_text(details.name, steps)),
        *_section("Checkpoints", [checkpoint_text(item) for item in checkpoints]),
        *_section(
            "Questions",
            [
                text
                for q in questions
                for text in _question(
                    q,
                    answers,
                    answerers_by_question,
                    attention.get((number, q.ordinal)),
                    asking.get(q.ordinal, ""),
                )
            ],
        ),
        *_section("Deliveries", summary_lines(deliveries, unserved)),
        *_section(
            "Artifacts",
            [file_text(artifact, over=over) for artifact in files],
        ),
        *_section("Result", list(result_lines(details))),
    )
    with app.out.paged():
        app.out.print(*lines)


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
    origin = f"{job.template}@{job.template_version}" if job.template else ""
    values = {"template": origin, "tags": ", ".join(job.tags), "pr": job.pr_url}
    values["skills"] = ", ".join(job.requested_skills)
    yield from (_pair(name, value) for name, value in values.items() if value)
    if len(chain) > 1:
        yield _pair("retries", _chain(job, chain))
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
        yield _pair("finished", times.ago(job.finished_at))
    if why.reason == "no_program":
        yield _pair("next", why.next_step)
    if job.status is Status.EXPIRED:
        yield _pair("expired", f"{why.text}; {why.next_step}", "red")
    elif job.status not in TERMINAL:
        yield _pair("waiting", f"{why.text}; {why.next_step}")


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


def _section(title: str, lines: Sequence[Text]) -> Iterator[Text]:
    if lines:
        yield styled("")
        yield styled(title, "bold underline")
        yield from lines


def _request(job: Job) -> list[Text]:
    text = (job.ticket_text or "").strip("\n")
    lines = [styled(f"  {text_line}") for text_line in text.splitlines()]
    rest = {name: value for name, value in job.payload.items() if name != "repo"}
    return lines + _fields(job, rest | ({"overrides": job.overrides} if job.overrides else {}))


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


def _question(
    question: Question,
    answers: Sequence[Answer],
    answerers_by_question: Mapping[int, str],
    attention: QuestionAttention | None,
    asking: str,
) -> Iterator[Text]:
    resolution = question.resolution or {}
    outcome = resolution.get("outcome", "open")
    given = question.answer_text()
    voters = ", ".join(resolution.get("by", ()))
    yield line(
        styled(f"  {question.name} ", "bold"),
        styled(outcome, "yellow" if outcome == "open" else "green"),
        f"  {one_line(question.text)}",
    )
    if (names := answerers_by_question.get(question.ordinal)) is not None:
        yield styled(f"    for {names} · {deadline_text(question)}", "yellow")
        if asking:
            yield styled(f"    {asking}", "yellow")
        details = (*attention_lines(attention), *detail_lines(question), *choice_lines(question))
        yield from (line("  ", detail) for detail in details)
        if question.freeform_allowed:
            yield styled(f"    {'or ' if question.choices else ''}free text", "dim")
        yield line("  ", answer_command(question))
    elif question.escalated_at:
        yield styled(f"    {escalation_text(question)}", "yellow")
    if given or voters:
        reason = f": {resolution['reason']}" if resolution.get("reason") else ""
        text = f"{one_line(given)}, " if given else ""
        decider = question.rule_text or f"{voters or resolution.get('via')}{reason}"
        first, *others = f"{text}by {decider}".splitlines()
        yield styled(f"    → {first}")
        yield from (styled(f"      {other}") for other in others)
    for answer in answers:
        if answer.question == question.ordinal and not answer.accepted:
            yield styled(f"    rejected from {answer.voter}: {answer.reason}", "dim")


def _pair(name: str, value: str, style: str = "") -> Table:
    return hanging_indent(line(styled(f"  {name:<9} ", "dim"), styled(one_line(value), style)), 12)
