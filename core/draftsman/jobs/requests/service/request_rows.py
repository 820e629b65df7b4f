"""Rows of requests, from which the store inserts jobs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import Formatter
from typing import Any, Final

from draftsman.deliveries.target import NONE
from draftsman.ids import new_id
from draftsman.jobs.requests import payloads as job_payloads
from draftsman.jobs.requests.invocation import PARAMETERS, Invocation, plain_digest
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
