"""Reserved names: keys of steps and questions, event kinds, artifacts. Pure."""

from __future__ import annotations

import unicodedata
from enum import StrEnum
from typing import Final

from draftsman.errors import UsageError
from draftsman.jobs.job import TRANSITIONS
from draftsman.sizes import EVENT_KIND, KEY, check_length


class Owner(StrEnum):
    """Author of a step: the worker, or its handler or agent."""

    WORKER = "worker"
    HANDLER = "handler"


AGENT: Final = "agent:"
SLEEP: Final = "sleep:"
KEYS: Final = (AGENT, SLEEP)
"""Prefixes of the worker's keys; the constraint `job_steps_owner` has the same."""
AGENT_KIND: Final = "agent."
"""Prefix of the kinds of an agent's events."""
EVENT_KINDS: Final = frozenset(TRANSITIONS.values()) | {
    *("action_refused", "answer_deleted", "answer_edited", "answer_received", "answer_refused"),
    *("attachment_failed", "attachment_refused", "attachment_uploaded", "attachments_added"),
    *("base_updated", "branch_published"),
    "cancel_requested",
    "budget_raised",
    *("command_executed", "delivery_dead_lettered", "delivery_sent", "job_created", "pr_created"),
    *("follow_up_created", "forge_event_ignored", "pull_request_ended"),
    "pull_request_reopened",
    *("iteration_finished", "iteration_started", "message_delivered", "message_sent"),
    *(
        "job_moved",
        "job_paused",
        "job_prioritized",
        "job_unpaused",
        "queue_reserved",
        "reservation_ended",
    ),
    *("question_acknowledged", "question_unacknowledged", "question_delegated"),
    "question_notified",
    *("question_escalated", "question_expired", "question_extended", "redelivered"),
    *("repo_resolved", "request_joined", "retry_not_created", "rule_applied", "sandbox_applied"),
    *("token_minted", "token_redeemed", "token_refused", "validation_ran", "vote_received"),
}
"""Kinds of draftsman's own events."""
COMMON_KINDS: Final = frozenset({"job_created", "job_claimed", "job_started", "job_completed"})
"""Kinds that are not in the index `job_events_kind`, because most jobs have an event of each."""
PATCH: Final = "changes.patch"
BUNDLE: Final = "checkpoint.bundle"
TRANSCRIPT: Final = "transcript.jsonl"
EVIDENCE: Final = "evidence.json"
PULL_REQUEST: Final = "agent:pull_request"
"""Key of the step that opens a pull request; its result has its number, URL and commit."""
ARTIFACTS: Final = {
    "patch": PATCH,
    "bundle": BUNDLE,
    "transcript": TRANSCRIPT,
    "evidence": EVIDENCE,
}
"""Kinds of the worker's artifacts, and the name of each."""


def check_key(key: str, owner: Owner, what: str) -> None:
    """Raise UsageError for a handler's key that is reserved or too long.

    Raise ValueError for a worker's key that is not reserved.
    """
    check_length(key, KEY, what)
    reserved = key.startswith(KEYS)
    if reserved and owner is not Owner.WORKER:
        raise UsageError(
            f"{what} {key[:80]!r}: the prefixes {' and '.join(KEYS)} are reserved; use another key"
        )
    if not reserved and owner is Owner.WORKER:
        raise ValueError(f"{key!r} is not a key of the worker")


def check_event_kind(kind: str, owner: Owner) -> None:
    """Raise UsageError for a kind of a handler that is reserved, agents' or too long."""
    check_length(kind, EVENT_KIND, "event kind")
    if owner is Owner.HANDLER and (kind in EVENT_KINDS or kind.startswith(AGENT_KIND)):
        raise UsageError(
            f"event kind {kind[:80]!r} is reserved; use another, such as"
            f" {'my_' + kind.removeprefix(AGENT_KIND)[:60]!r}"
        )


def check_artifact(name: str, kind: str, owner: Owner) -> None:
    """Raise UsageError for a name or kind of artifact of a handler that is reserved or too long."""
    check_length(name, KEY, "artifact name")
    if owner is Owner.WORKER:
        return
    if kind in ARTIFACTS:
        raise UsageError(f"artifact kind {kind!r} is reserved; allowed: report, file")
    plain = "".join(part for part in unicodedata.normalize("NFKC", name) if part.isprintable())
    if plain.strip().casefold() in ARTIFACTS.values():
        raise UsageError(
            f"artifact name {name!r} is reserved; use another, such as {'my-' + name!r}"
        )
