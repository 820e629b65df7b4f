"""Reserved names: keys of steps and questions, event kinds, artifacts. Pure."""

from __future__ import annotations

import unicodedata
from enum import StrEnum
from typing import Final

from draftsman.errors import UsageError
from draftsman.jobs.event_kinds import AGENT_KIND, EVENTS
from draftsman.sizes import EVENT_KIND, KEY, check_length


class Owner(StrEnum):
    """Author of a step: the worker, or its handler or agent."""

    WORKER = "worker"
    HANDLER = "handler"


AGENT: Final = "agent:"
SLEEP: Final = "sleep:"
NOW: Final = "now:"
KEYS: Final = (AGENT, SLEEP, NOW)
"""Prefixes of the worker's keys; the constraint `job_steps_owner` has the same."""
RESERVED_KEYS: Final = ("retry:", "auto:", "schedule:", "spawn:")
"""Prefixes of the generated keys of requests."""
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
            f"{what} {key[:80]!r}: the prefixes {', '.join(KEYS)} are reserved; use another key"
        )
    if not reserved and owner is Owner.WORKER:
        raise ValueError(f"{key!r} is not a key of the worker")


def check_event_kind(kind: str, owner: Owner) -> None:
    """Raise UsageError for a kind of a handler that is reserved, agents' or too long."""
    check_length(kind, EVENT_KIND, "event kind")
    if owner is Owner.HANDLER and (kind in EVENTS or kind.startswith(AGENT_KIND)):
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
