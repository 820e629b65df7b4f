"""Names that only draftsman writes: keys of steps and questions, event kinds, artifacts. Pure."""

from __future__ import annotations

import unicodedata
from enum import StrEnum
from typing import Final

from draftsman.domain.job import TRANSITIONS
from draftsman.errors import UsageError


class Owner(StrEnum):
    """The author of a step: the worker itself, or the handler or agent that it runs."""

    WORKER = "worker"
    HANDLER = "handler"


AGENT: Final = "agent:"
SLEEP: Final = "sleep:"
KEYS: Final = (AGENT, SLEEP)
"""Prefixes of the worker's own keys; `job_steps_owner` in the database says the same."""
AGENT_KIND: Final = "agent."
"""Prefix of the kind of every event that an agent sends."""
EVENT_KINDS: Final = frozenset(TRANSITIONS.values()) | {
    *("action_refused", "answer_deleted", "answer_edited", "answer_received", "answer_refused"),
    *("attachment_failed", "attachment_uploaded", "branch_published", "cancel_requested"),
    *("command_executed", "delivery_dead_lettered", "delivery_sent", "job_created", "pr_created"),
    *("question_escalated", "question_expired", "question_extended", "redelivered"),
    *("repo_resolved", "request_joined", "retry_not_created", "sandbox_applied", "token_minted"),
    *("token_redeemed", "token_refused", "validation_ran", "vote_received"),
}
"""Kinds of the events that draftsman itself writes."""
PATCH: Final = "changes.patch"
BUNDLE: Final = "checkpoint.bundle"
ARTIFACTS: Final = {"patch": PATCH, "bundle": BUNDLE}
"""The worker's own kinds of artifacts, and the one name of each."""


def check_key(key: str, owner: Owner, what: str) -> None:
    """Raise UsageError for a key of the worker that another owner uses, or the other way round."""
    own = key.startswith(KEYS)
    if own and owner is not Owner.WORKER:
        raise UsageError(
            f"{what} {key[:80]!r}: keys that begin with {' or '.join(KEYS)} are draftsman's own;"
            " choose another key"
        )
    if not own and owner is Owner.WORKER:
        raise ValueError(f"{key!r} is not a key of the worker")


def check_event_kind(kind: str, owner: Owner) -> None:
    """Raise UsageError for a kind that draftsman itself writes, or the prefix of agents."""
    if owner is Owner.HANDLER and (kind in EVENT_KINDS or kind.startswith(AGENT_KIND)):
        raise UsageError(
            f"event kind {kind[:80]!r} is draftsman's own; choose another, such as"
            f" {'my_' + kind.removeprefix(AGENT_KIND)[:60]!r}"
        )


def check_artifact(name: str, kind: str, owner: Owner) -> None:
    """Raise UsageError for a name or a kind of artifact that only the worker writes."""
    if owner is Owner.WORKER:
        return
    if kind in ARTIFACTS:
        raise UsageError(f"artifacts of kind {kind!r} are draftsman's own; allowed: report, file")
    plain = "".join(part for part in unicodedata.normalize("NFKC", name) if part.isprintable())
    if plain.strip().casefold() in ARTIFACTS.values():
        raise UsageError(
            f"artifact name {name!r} is draftsman's own; choose another, such as {'my-' + name!r}"
        )
