"""Rows of requests, from which the store inserts jobs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import Formatter
from typing import Any, Final, NamedTuple

from draftsman.database.database import Connection
from draftsman.deliveries.store import deliveries
from draftsman.deliveries.target import NONE, Target
from draftsman.ids import new_id
from draftsman.jobs.requests import payloads as job_payloads
from draftsman.jobs.requests.invocation import PARAMETERS, Invocation, SubmitResult, plain_digest
from draftsman.jobs.requests.service import unique_work
from draftsman.jobs.requests.service.unique_work import UniqueRequest
from draftsman.jobs.requests.store import submissions as store
from draftsman.jobs.runs.job_limits import TOOL_TYPE, JobLimits, check_override_names
from draftsman.people.actor import Actor
from draftsman.repos.repo_catalog import NO_REPO, repo_columns, repo_names_by_source
from draftsman.text import canonical

_REPO: Final = ("repo_host", "repo_owner", "repo_name")


def rows(
    requests: Sequence[tuple[Invocation, Actor]], configured: JobLimits
) -> list[dict[str, Any]]:
    """Return the column values for the job of each request; raises UsageError.

    Plain requests of a type share all values that do not depend on key and payload, the same
    objects. Their payload is JSON, which their digest needs anyway.
    """
    shared: dict[tuple[str, int], dict[str, Any]] = {}
    built = []
    for item, actor in requests:
        kind = item.type, id(actor)
        common = shared.get(kind)
        if common is None or not item.is_plain:
            values = row(item, actor, configured)
            if item.is_plain and item.type not in job_payloads.MODELS and item.type != TOOL_TYPE:
                shared[kind] = values
        else:
            payload = canonical(item.payload)
            values = {
                **common,
                "id": new_id(),
                "idempotency_key": item.key,
                "request_digest": plain_digest(item.type, payload),
                "payload": payload,
            }
        built.append(values)
    return built


def row(item: Invocation, actor: Actor, configured: JobLimits) -> dict[str, Any]:
    """Return the column values for the job of an invocation; raises UsageError."""
    if item.type in job_payloads.MODELS and item.type not in configured.replaced:
        job_payloads.parse(item.type, item.payload)
    check_override_names(item.type, item.overrides, configured.replaced)
    job_id = new_id()
    named = repo_names_by_source((), [item.repo])[item.repo] if item.repo else NO_REPO
    limits = configured.of(item.type, item.agent, item.payload, item.overrides)
    return {
        "id": job_id,
        "type": item.type,
        "idempotency_key": item.idempotency_key,
        "request_digest": item.digest,
        "queue": item.queue,
        "priority": item.priority,
        "subject_key": item.subject_key,
        "concurrency_key": item.concurrency_key,
        "mode": item.mode,
        "source": actor.channel,
        "source_type": item.source_type,
        "external_event_id": item.external_event_id,
        "invoker_id": actor.voter,
        "invoker_display_name": actor.display_name,
        **repo_columns(named),
        "ticket_url": item.url,
        "ticket_title": item.headline,
        "ticket_text": item.text,
        "payload": item.stored_payload,
        "overrides": item.overrides | _kept(item),
        "requested_skills": list(item.skills),
        "tags": list(item.tags),
        "agent": item.agent,
        "retry_of": None,
        "chain_length": 0,
        "template": item.template.name if item.template else None,
        "template_version": item.template.version if item.template else None,
        "run_at": item.run_at.isoformat() if item.run_at else None,
        "delay": item.unique.debounce if item.unique and item.unique.debounce else item.delay,
        "max_attempts": _first(item.max_attempts, limits.max_attempts),
        "max_retries": _first(item.max_retries, limits.max_retries),
        "on_lost": item.on_lost or limits.on_lost,
        "has_targets": False,
        "hold": "parents" if item.after or item.group else None,
    }


def _kept(item: Invocation) -> dict[str, Any]:
    """Return what a job keeps with its overrides: no notifications, the template's parameters."""
    kept: dict[str, Any] = {"notify": NONE} if NONE in item.notify else {}
    if item.template is not None and item.template.parameters:
        kept[PARAMETERS] = item.template.parameters
    return kept


def set_default_keys(values: Sequence[dict[str, Any]], configured: JobLimits) -> None:
    """Set the concurrency key of a type where a request has none.

    A job without a value for a placeholder, such as a repository, gets no key.
    """
    for columns in values:
        key = configured.concurrency_keys.get(columns["type"])
        if key is None or columns["concurrency_key"] is not None:
            continue
        repo = "/".join(filter(None, (columns[field] for field in _REPO))).lower()
        known = {"repo": repo, **{item: columns[item] for item in ("type", "queue", "agent")}}
        text = f"{columns['ticket_title'] or ''}\n{columns['ticket_text'] or ''}"
        paths = configured.key_paths.get(columns["type"], ())
        known["path"] = next((path for path in paths if names_path(text, path)), None)
        if all(known[item] for _, item, _, _ in Formatter().parse(key) if item is not None):
            columns["concurrency_key"] = key.format_map(known)


def names_path(text: str, path: str) -> bool:
    """Return whether a text names a folder or file, or one below it."""
    own = re.escape(path.rstrip("/"))
    return re.search(rf"(?<![\w/-])(?<![\w/-]\.)(?:\./)?{own}(?![\w-])", text) is not None


def _first(value: int | None, default: int) -> int:
    return default if value is None else value


# Insertion of a batch of requests, in the transaction of the caller.


MAX_KEPT_TEXT: Final = 3000
"""Maximum length of the stored text of a request that joined an active job, in characters."""


class NewRequest(NamedTuple):
    """The columns of a request, its targets, and the name of its actor."""

    values: dict[str, Any]
    targets: list[Target]
    actor: str
    unique: UniqueRequest | None
    after: Sequence[str] = ()
    """Display names of its parents."""
    attachments: Sequence[dict[str, Any]] = ()
    """The rows of its files."""
    is_operator: bool = False
    """Whether its actor may control jobs of others."""


async def insert(conn: Connection, batch: Sequence[NewRequest]) -> list[tuple[int, SubmitResult]]:
    """Insert a batch, and add an event and targets for each request that joined an active job.

    Return the results with their indexes in the batch. Each actor has a statement, in sorted order
    like the keys of a statement, so that two batches cannot deadlock.
    """
    by_actor: dict[str, list[int]] = {}
    for index, item in enumerate(batch):
        by_actor.setdefault(item.actor, []).append(index)
    keys = [item.unique.key for item in batch if item.unique]
    if keys:  # subjects are locked with them, in a common order
        keys += [item.values["subject_key"] for item in batch]
        await store.lock_subjects(conn, keys)
    results: list[tuple[int, SubmitResult]] = []
    for actor, indexes in sorted(by_actor.items()):
        inserted = await _insert_of(conn, [batch[index] for index in indexes], actor)
        joined = [
            (result.number, _request(batch[indexes[result.place]]))
            for result in inserted
            if result.outcome == "joined"
        ]
        if joined:
            await store.join(conn, joined, actor)
        results += [(indexes[result.place], result) for result in inserted]
    joined_with_targets = [
        (item.number, batch[index].targets)
        for index, item in results
        if item.outcome == "joined" and batch[index].targets
    ]
    if joined_with_targets:
        created = {item.number for _, item in results if item.outcome == "created"}
        await deliveries.add_targets(conn, joined_with_targets, created)
    for index, result in results:
        if batch[index].attachments and result.outcome in ("created", "joined"):
            await _attach(conn, result.number, batch[index])
    return results


async def _attach(conn: Connection, job: int, item: NewRequest) -> None:
    """Add the files of a request to its job."""
    from draftsman.jobs.requests.store import attachments

    await attachments.add(conn, job, item.actor, item.attachments, None)


async def _insert_of(
    conn: Connection, batch: Sequence[NewRequest], actor: str
) -> list[SubmitResult]:
    """Insert the requests of an actor together, except those that may repeat a job."""
    plain = [index for index, item in enumerate(batch) if item.unique is None]
    results = []
    if plain:
        rows = [batch[i].values for i in plain]
        targets = [batch[i].targets for i in plain]
        results = await store.submit(conn, rows, actor, targets)
    if len(plain) == len(batch):
        return results
    results = [result._replace(place=plain[result.place]) for result in results]
    for index, item in enumerate(batch):
        if item.unique is not None:
            stored = await unique_work.submit(conn, item.unique, item.values, item.targets, actor)
            results += [result._replace(place=index) for result in stored]
    return results


def _request(item: NewRequest) -> dict[str, Any]:
    """Return the event payload for a request that joined an active job."""
    row = item.values
    text = row["ticket_text"]
    payload = {
        "requester": row["invoker_id"],
        "name": row["invoker_display_name"],
        "source": row["source"],
        "title": row["ticket_title"],
        "text": text[:MAX_KEPT_TEXT] if text else None,
        "url": row["ticket_url"],
        "key": row["idempotency_key"],
        "digest": row["request_digest"],
        "after": list(item.after),
    }
    return {name: value for name, value in payload.items() if value}
