"""Columns of the jobs of requests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any

from draftsman.deliveries.target import NONE
from draftsman.ids import new_id
from draftsman.jobs.requests import payloads as job_payloads
from draftsman.jobs.requests.invocation import (
    PARAMETERS,
    PAYLOAD_VERSION,
    DigestFrame,
    Invocation,
)
from draftsman.jobs.requests.service.submission_trace import traceparent
from draftsman.jobs.runs.job_limits import TOOL_TYPE, JobLimits, check_override_names
from draftsman.people.actor import Actor
from draftsman.repos.repo_catalog import EMPTY, NO_REPO, RepoName, repo_columns
from draftsman.text import canonical
from draftsman.tracing.tracer import TRACEPARENT


def rows(
    requests: Sequence[tuple[Invocation, Actor]],
    configured: JobLimits,
    repo_names: Mapping[str, RepoName] | None = None,
) -> list[dict[str, Any]]:
    """Return the column values for the job of each request; raises UsageError.

    Plain requests of a type share all values that do not depend on key and payload, the same
    objects. Their payload is JSON, which their digest needs anyway.
    """
    shared: dict[tuple[str, int], tuple[dict[str, Any], DigestFrame]] = {}
    all_columns = []
    for request, actor in requests:
        kind = request.type, id(actor)
        known = shared.get(kind)
        if known is None or not request.is_plain:
            columns = row(request, actor, configured, repo_names)
            is_modeled = request.type in job_payloads.MODELS or request.type == TOOL_TYPE
            if request.is_plain and not is_modeled:
                shared[kind] = columns, request.digest_frame
        else:
            common, frame = known
            payload = canonical(request.payload)
            columns = {
                **common,
                "id": new_id(),
                "idempotency_key": request.key,
                "request_digest": frame.digest(payload),
                "payload": payload,
            }
        all_columns.append(columns)
    return all_columns


def row(
    item: Invocation,
    actor: Actor,
    configured: JobLimits,
    repo_names: Mapping[str, RepoName] | None = None,
) -> dict[str, Any]:
    """Return the column values for the job of an invocation; raises UsageError.

    `repo_names` has the name of each repository; without it, a repository has the name of its URL.
    """
    if item.type in job_payloads.MODELS and item.type not in configured.replaced:
        job_payloads.parse(item.type, item.payload)
    check_override_names(item.type, item.overrides, configured.replaced)
    limits = configured.of(item.type, item.agent, item.payload, item.overrides)
    repo_name = _repo_name(item, repo_names)
    return {
        "id": new_id(),
        "type": item.type,
        "idempotency_key": item.idempotency_key,
        "request_digest": item.digest,
        "queue": item.queue,
        "priority": item.priority,
        "subject_key": item.subject_key,
        "concurrency_key": item.concurrency_key or _default_key(item, configured, repo_name),
        "mode": item.mode if item.asks_agent else None,
        "source": actor.channel,
        "source_type": item.source_type,
        "external_event_id": item.external_event_id,
        "invoker_id": actor.voter,
        "invoker_display_name": actor.display_name,
        **repo_columns(repo_name),
        "ticket_url": item.url,
        "ticket_title": item.headline,
        "ticket_text": item.text,
        "payload": item.stored_payload,
        "overrides": _stored_overrides(item),
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


def _repo_name(item: Invocation, repo_names: Mapping[str, RepoName] | None) -> RepoName:
    if item.repo is None:
        return NO_REPO
    if repo_names is None:
        repo_names = EMPTY.names_of([item.repo])
    return repo_names[item.repo]


def _stored_overrides(item: Invocation) -> dict[str, Any]:
    """Return the overrides with what else a job stores in them.

    These are whether it notifies nobody, the parameters of its template, the version of its
    payload, and the trace that it was submitted in.
    """
    overrides = dict(item.overrides)
    if NONE in item.notify:
        overrides["notify"] = NONE
    if item.template is not None and item.template.parameters:
        overrides[PARAMETERS] = item.template.parameters
    if item.payload_version not in (None, 1):
        overrides[PAYLOAD_VERSION] = item.payload_version
    if (enclosing := traceparent()) is not None:
        overrides[TRACEPARENT] = enclosing
    return overrides


def _default_key(item: Invocation, configured: JobLimits, repo_name: RepoName) -> str | None:
    """Return the concurrency key of a type.

    A job without a value for a placeholder, such as a repository, gets no key.
    """
    key = configured.concurrency_keys.get(item.type)
    if key is None:
        return None
    text = f"{item.headline or ''}\n{item.text or ''}"
    paths = configured.key_paths.get(item.type, ())
    placeholders = {
        "repo": "/".join(filter(None, repo_name)).lower(),
        "type": item.type,
        "queue": item.queue,
        "agent": item.agent,
        "path": next((path for path in paths if names_path(text, path)), None),
    }
    if all(placeholders[name] for _, name, _, _ in Formatter().parse(key) if name is not None):
        return key.format_map(placeholders)
    return None


def names_path(text: str, path: str) -> bool:
    """Return whether a text names a folder or file, or one below it."""
    escaped = re.escape(path.rstrip("/"))
    return re.search(rf"(?<![\w/-])(?<![\w/-]\.)(?:\./)?{escaped}(?![\w-])", text) is not None


def _first(value: int | None, default: int) -> int:
    return default if value is None else value
