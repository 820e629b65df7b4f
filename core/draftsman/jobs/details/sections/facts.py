"""The facts of a job: its state, its request in short, and what it is connected with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from draftsman.errors import CommandHint
from draftsman.formats.amounts import counted
from draftsman.formats.times import in_zone
from draftsman.ids import account_name, job_name
from draftsman.jobs.details.job_details import JobDetails
from draftsman.jobs.details.sections.section import (
    Fact,
    Line,
    LineSpan,
    Reader,
    flat,
    status_span,
)
from draftsman.jobs.details.wait_reason import WaitReason, failure_text
from draftsman.jobs.job import AGENT_TYPE, FAILURES, TERMINAL, Job, Status
from draftsman.jobs.requests.uncommitted_changes import FIELD as CHANGES
from draftsman.jobs.reserved_names import RESERVED_KEYS
from draftsman.jobs.retries import ErrorClass
from draftsman.jobs.status_display import Meaning
from draftsman.text import is_link
from draftsman.value_format import network_text, sum_usage, usage_lines

FAILING: Final = FAILURES | {Status.RETRYING}
"""Statuses caused by the last error; in any other status the error is from an earlier attempt."""

_SPACE: Final = re.compile(r"\s+")
STATE_LABELS: Final = {Status.RUNNING: "now"}
"""Labels of the reason of a status; that of a job in any other status waits."""


def facts(details: JobDetails, reader: Reader) -> Iterator[Fact]:
    """Yield the request in short, and what the job is connected with."""
    yield from _request(details, reader)
    yield from _links(details)
    if sandbox := details.sandbox:
        network = network_text(sandbox.get("network"), "with network", "no network")
        yield _fact("sandbox", f"{sandbox.get('mode')} · {network} · uid {sandbox.get('uid')}")
    if incomplete := details.works_without:
        for part in incomplete.get("parts", ()):
            yield _fact("without", part.get("text"), Meaning.WARNING)
    if usage := sum_usage(run.usage for run in details.runs):
        yield _fact("usage", usage_lines(usage))


def status(details: JobDetails) -> LineSpan:
    """Return the status of the job, also if it is paused, for its heading."""
    job = details.job
    denied = job.error_class == ErrorClass.DENIED
    return status_span(job.status, denied=denied, paused=details.wait_reason.shown_as_paused)


def attempts_text(job: Job) -> str:
    """Return how many runs were lost or failed by the infrastructure, of how many at most."""
    return f"attempts {job.attempts} of {job.max_attempts} (lost or broken runs)"


def type_text(job: Job) -> str:
    """Return the type of a job, its agent and its mode: `run_agent · agent tidy · mode fix`.

    The first run of a job without an agent records that of the repository.
    """
    asked = job.request
    if asked is None:
        return job.type
    agent = f" · agent {asked.agent}" if asked.agent else ""
    if asked.agent is None and job.type == AGENT_TYPE and job.status not in TERMINAL:
        agent = " · agent of its repository"
    return f"{job.type}{agent} · mode {asked.mode}"


def _fact(label: str, text: object, meaning: Meaning | None = None) -> Fact:
    return Fact(label, (LineSpan(flat(text), meaning),))


def state(details: JobDetails, reader: Reader) -> Iterator[Fact]:
    """Yield why the job is in its state, and what follows."""
    job = details.job
    why = details.wait_reason
    if job.status is Status.EXPIRED:
        yield Fact("expired", _explained(why, reader, Meaning.FAILURE))
    elif not details.is_over:
        yield Fact(STATE_LABELS.get(job.status, "waiting"), _explained(why, reader))
    if job.cancel_requested_by:
        reason = f": {job.cancel_reason}" if job.cancel_reason else ""
        yield _fact("cancel", f"by {account_name(job.cancel_requested_by)}{reason}")
    if job.error_class == ErrorClass.DENIED:
        yield _fact("decision", job.last_error, Meaning.DENIED)
    elif job.last_error and job.status in FAILING:
        yield _fact("error", failure_text(job), Meaning.FAILURE)
    elif job.last_error:
        yield _fact("earlier", f"previous attempt: {job.last_error}", Meaning.NEUTRAL)
    if why.dismissal is not None:
        yield _fact("dismissed", why.dismissal)
    if why.retried_as is not None:
        yield _fact("retried", f"as {job_name(why.retried_as)}")
    if why.reason == "no_program" or (is_open_failure(details) and reader.types_commands):
        yield _fact("next", why.next_step_in(reader.hint))
    if job.finished_at:
        yield Fact("finished", (reader.ago(job.finished_at),))


def is_open_failure(details: JobDetails) -> bool:
    """Return whether a job failed, and was neither retried nor dismissed: it says what next."""
    why = details.wait_reason
    return details.job.status in FAILURES and why.retried_as is None and why.dismissal is None


def _explained(why: WaitReason, reader: Reader, meaning: Meaning | None = None) -> Line:
    """Return the reason of a status and the next step, without one that is typed elsewhere.

    The reason of a retry is its error, which has a line of its own.
    """
    is_command = any(isinstance(span, CommandHint) for span in why.next_spans)
    then = (LineSpan(flat(why.next_step_in(reader.hint)), meaning),)
    if why.reason == "backoff" and (reader.types_commands or not is_command):
        return then
    text = tuple(
        LineSpan(_SPACE.sub(" ", span), meaning)
        if isinstance(span, str)
        else reader.clock(span, meaning)
        for span in why.text_spans
    )
    is_whole = not why.next_spans or (is_command and not reader.types_commands)
    return text if is_whole else (*text, "; ", *then)


def _request(details: JobDetails, reader: Reader) -> Iterator[Fact]:
    job = details.job
    retries = f"retries {job.retry_count} of {job.max_retries}" if job.max_retries else "no retries"
    attempts = f" · {attempts_text(job)}" if job.attempts else ""
    yield _fact("runs", f"{job.run_count} · {retries}{attempts}")
    yield _fact("type", type_text(job))
    source = job.payload.get("repo")
    origin = source.get("source") if isinstance(source, dict) else None
    if places := dict.fromkeys(filter(None, (job.request and job.request.repo, origin))):
        yield _fact("repo", " · ".join(places))
    if isinstance(changes := job.payload.get(CHANGES), dict):
        files = counted(changes.get("files", 0), "uncommitted file")
        yield _fact("with", f"{files} of the requester, on {str(changes.get('base'))[:12]}")
    yield Fact("requester", (f"{_requester(job)}, ", reader.ago(job.created_at)))
    is_own_key = not job.idempotency_key.startswith((*RESERVED_KEYS, f"{job.source}:"))
    key = f" · key {job.idempotency_key}" if is_own_key else ""
    shared = f" · concurrency key {job.concurrency_key}" if job.concurrency_key else ""
    yield _fact("queue", f"{job.queue} · priority {job.priority}{key}{shared}")
    if job.url:
        yield Fact("link", (_link(job.url),))
    if job.template:
        yield _fact("template", f"{job.template}@{job.template_version}")
    if job.tags:
        yield _fact("tags", ", ".join(job.tags))
    if job.request and job.request.skills:
        yield _fact("skills", ", ".join(job.request.skills))
    if names := _attachment_names(job.payload):
        yield _fact("attached", ", ".join(names))


def _links(details: JobDetails) -> Iterator[Fact]:
    """Yield the pull request, the occurrence of a schedule, and the jobs that a job replaces."""
    job = details.job
    family = details.family
    url = family.pull.url if job.pr_url is None and family is not None else job.pr_url
    if url:
        state = "" if family is None else f" · {family.text_of(job.number)}"
        yield Fact("pull request", (_link(url), state))
    if (fire := details.occurrence) is not None:
        due = in_zone(fire.due_at, fire.timezone)
        yield _fact("schedule", f"{fire.schedule} · due {due} {fire.timezone}")
    replacement = details.replacement
    if replacement.key is not None:
        yield _fact("unique", replacement.key)
    if replacement.replaces is not None:
        yield _fact("replaces", job_name(replacement.replaces))
    if replacement.replaced_by is not None:
        yield _fact("replaced", f"by {job_name(replacement.replaced_by)}")


def _requester(job: Job) -> str:
    """Return the name and the account: `Anna (mail:a@example.org)`, `Ben (cli)`."""
    shown = job.invoker_display_name or job.invoker_id
    account = job.invoker_id if job.invoker_id.startswith(f"{job.source}:") else str(job.source)
    is_named = job.invoker_id.casefold() in (shown.casefold(), account.casefold())
    return flat(f"{shown} ({account})" if is_named else f"{shown} ({account}, {job.invoker_id})")


def _link(url: str) -> LineSpan:
    return LineSpan(flat(url), url=url if is_link(url) else "")


def _attachment_names(payload: dict[str, Any]) -> list[str]:
    """Return the names of attachments; a card has them in its ticket."""
    card = payload.get("ticket")
    attachments = (card if isinstance(card, dict) else payload).get("attachments")
    if not isinstance(attachments, list):
        return []
    return [
        str(attachment.get("name", attachment) if isinstance(attachment, dict) else attachment)
        for attachment in attachments
    ]
