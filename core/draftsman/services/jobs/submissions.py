"""invocation -> job. Sent twice, or a hundred times at once, it is still one job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import UUID

from pydantic import ValidationError

from draftsman import field_errors
from draftsman.domain import job_payloads
from draftsman.domain.ids import new_id
from draftsman.domain.invocation import Invocation
from draftsman.domain.job import Source, Status
from draftsman.domain.messages.delivery import DeliveryKind
from draftsman.domain.messages.target import NONE, Target, Targets, parse
from draftsman.domain.people.actor import Actor
from draftsman.domain.people.policy import Policy, Verb
from draftsman.domain.repos.repo_catalog import Repo, repo_names_by_source
from draftsman.domain.repos.repo_url import is_folder
from draftsman.domain.repos.repo_url import parse as parse_repo
from draftsman.domain.retries.job_limits import JobLimits
from draftsman.errors import FieldError, IdempotencyConflict, LostRace, UsageError
from draftsman.schemas.checker import SchemaChecker
from draftsman.store import deliveries, repos
from draftsman.store import submissions as store
from draftsman.store.postgres.caller_connection import CallersConnection, adapt
from draftsman.store.postgres.database import (
    Connection,
    Database,
    retry_conflicts,
    translate_errors,
)
from draftsman.store.submissions import (
    RecentDuplicate as RecentDuplicate,  # of `alike`, for those who warn of it
)

CHAT_SOURCES = frozenset({Source.SLACK, Source.TRELLO})
"""Where people ask who may name no folder of the machines that work for them."""
SUBMIT_ATTEMPTS = 5
"""How often a batch looks again for rows that a concurrent twin was just committing."""
MAX_KEPT_TEXT: Final = 3000
"""Characters of the text of a request that joined a live job."""
MAX_REPOS = 5000
"""Known repositories that are looked at."""
_TELLS = "send_notification"


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """The job of an invocation; `how` is created, deduplicated or joined."""

    number: int
    id: UUID
    status: Status
    how: str

    @property
    def name(self) -> str:
        """What people call it: `D-142`."""
        return f"D-{self.number}"


class Submissions:
    """Takes requests in."""

    def __init__(self, db: Database, policy: Policy, limits: JobLimits, targets: Targets) -> None:
        self._db = db
        self._policy = policy
        self._limits = limits
        self._targets = targets

    async def submit(self, invocation: Invocation, actor: Actor) -> SubmittedJob:
        """Make the job of this invocation, or find the one it made before.

        Raises NotPermitted, IdempotencyConflict when the key was used for another request, and
        UsageError when the payload is not what a built-in type takes.
        """
        return (await self.submit_many([invocation], actor))[0]

    async def submit_many(
        self,
        invocations: Sequence[Invocation],
        actor: Actor,
        *,
        connection: CallersConnection | None = None,
    ) -> list[SubmittedJob]:
        """Make a job each in one statement; the answer is in the order of the request.

        With a `connection` of the caller, in its transaction. All or nothing is not promised: an
        IdempotencyConflict names the first conflicting key, and the others are jobs by then;
        sending the batch again is safe.
        """
        actor = self._policy.resolve(actor)
        self._policy.check(actor, Verb.SUBMIT)
        rows = [row(item, actor, self._limits) for item in invocations]
        await self._file(invocations, rows)
        await self._check_schemas(invocations)
        if actor.channel in CHAT_SOURCES:
            await self._refuse_folders(invocations)
        told = [self._told(item) for item in invocations]
        for one, targets in zip(rows, told, strict=True):
            one["has_targets"] = bool(targets)
        taken: dict[int, store.SubmitResult] = {}
        for _ in range(SUBMIT_ATTEMPTS):
            missing = [place for place in range(len(rows)) if place not in taken]
            if not missing:
                break
            batch = [rows[place] for place in missing]
            wanted = [told[place] for place in missing]
            if connection is not None:
                with translate_errors():
                    sent = await _insert(adapt(connection), batch, wanted, actor.name)
            else:
                sent = await retry_conflicts(partial(self._send, batch, wanted, actor.name))
            for item in sent:
                taken[missing[item.place]] = item
        if len(taken) < len(rows):
            raise LostRace("another request with the same key or subject is still being committed")
        for place, item in taken.items():
            if item.how == "deduplicated" and item.request_digest != rows[place]["request_digest"]:
                raise IdempotencyConflict(_conflict(rows[place], item), job=item.number)
        return [
            SubmittedJob(item.number, item.id, item.status, item.how)
            for _, item in sorted(taken.items())
        ]

    async def _file(self, invocations: Sequence[Invocation], rows: list[dict[str, Any]]) -> None:
        """Give each row the name of its repository where that is known."""
        sources = {item.repo for item in invocations if item.repo}
        if not sources:
            return
        async with self._db.connection() as conn:
            names = repo_names_by_source(await repos.all_repos(conn, MAX_REPOS), sources)
        for item, one in zip(invocations, rows, strict=True):
            if item.repo:
                one["repo_owner"], one["repo_name"] = names[item.repo]

    async def _refuse_folders(self, invocations: Sequence[Invocation]) -> None:
        """Raise UsageError for a folder of this machine that nobody made known."""
        for item in invocations:
            about = item.stored_payload.get("repo")
            source = about.get("source") if isinstance(about, dict) else about
            if not source or not is_folder(str(source)):
                continue
            async with self._db.connection() as conn:
                if not await _is_known(conn, str(source)):
                    raise UsageError(
                        "a folder of a worker cannot be named from chat; give the name of a known"
                        " repository, or a URL"
                    )

    async def _check_schemas(self, invocations: Sequence[Invocation]) -> None:
        """Raise UsageError for a payload's schema that is none, or that cannot be checked."""
        given: dict[str, tuple[str, Any]] = {}
        for item in invocations:
            if item.type in job_payloads.MODELS and item.type not in self._limits.replaced:
                schema = job_payloads.output_schema(item.type, item.payload)
                if schema is not None:
                    given.setdefault(json.dumps(schema), (item.type, schema))
        async with SchemaChecker() as checker:
            for type, schema in given.values():
                if (why := await checker.schema_problem(schema)) is not None:
                    raise UsageError(f"payload of {type}: output: {why}")

    async def recent_duplicate(
        self, number: int, place: Target, seconds: float
    ) -> RecentDuplicate | None:
        """Return another job that this one's invoker asked for in the same words, told there too.

        By the database's clock, less than so many seconds before; a canceled one is none.
        """
        async with self._db.connection() as conn:
            return await store.recent_duplicate(conn, number, place.channel, place.target, seconds)

    def _told(self, item: Invocation) -> list[Target]:
        """Return who is told of a request; raises UsageError also for whom it is itself to tell."""
        told = self._targets.of(item)
        if item.type == _TELLS and item.type not in self._limits.replaced:
            named = [parse(text) for text in job_payloads.notification_targets(item.payload)]
            for target in named:
                self._targets.check(target)
            if not named and not any(DeliveryKind.NOTICE in target.kinds for target in told):
                raise UsageError("nobody would hear it: name targets in its payload, or --notify")
        return told

    async def _send(
        self, rows: list[dict[str, Any]], told: list[list[Target]], actor: str
    ) -> list[store.SubmitResult]:
        """Insert a batch: in one statement, or in one transaction with targets or subjects."""
        if not any(told) and not any(one["subject_key"] for one in rows):
            async with self._db.connection() as conn:
                return await store.submit(conn, rows, actor)
        async with self._db.transaction() as conn:
            return await _insert(conn, rows, told, actor)


async def _insert(
    conn: Connection, rows: list[dict[str, Any]], told: list[list[Target]], actor: str
) -> list[store.SubmitResult]:
    """Insert a batch, its targets, and an event for each request that joined a live job."""
    taken = await store.submit(conn, rows, actor)
    joined = [(item.number, _request(rows[item.place])) for item in taken if item.how == "joined"]
    if joined:
        await store.join(conn, joined, actor)
    new = [
        (item.number, told[item.place])
        for item in taken
        if item.how != "deduplicated" and told[item.place]
    ]
    if new:
        await deliveries.add_targets(conn, new)
    return taken


async def _is_known(conn: Connection, folder: str) -> bool:
    """Return whether an operator made a folder known as a repository."""
    try:
        repo = Repo.at(parse_repo(folder))
    except UsageError:
        return False
    known = await repos.find_conflict(conn, repo)
    return known is not None and known.remote_url == repo.remote_url


def invocation(**fields: Any) -> Invocation:
    """Build an Invocation; raises FieldError in one line for what is not allowed."""
    try:
        return Invocation(**fields)
    except ValidationError as error:
        key, message = field_errors.first_error(error)
        details = error.errors()[0]
        value, rule = details["input"], details["type"]
        shown = f" {value[:60]!r}" if isinstance(value, str) and key != "repo" else ""
        text = f"{key or 'request'}{shown}: {message}"
        raise FieldError(text, field=key, problem=message, rule=rule) from None


def row(item: Invocation, actor: Actor, configured: JobLimits) -> dict[str, Any]:
    """Return the columns of the job that an invocation makes; raises UsageError."""
    if item.type in job_payloads.MODELS and item.type not in configured.replaced:
        job_payloads.parse(item.type, item.payload)
    job_id = new_id()
    owner, name = repo_names_by_source((), [item.repo])[item.repo] if item.repo else (None, None)
    limits = configured.of(item.type, item.agent, item.payload, item.overrides)
    return {
        "id": job_id,
        "type": item.type,
        "idempotency_key": item.key or f"auto:{job_id}",
        "request_digest": item.digest,
        "queue": item.queue,
        "priority": item.priority,
        "subject_key": item.subject_key,
        "mode": item.mode,
        "source": actor.channel,
        "source_type": item.source_type,
        "external_event_id": item.external_event_id,
        "invoker_id": actor.voter,
        "invoker_display_name": actor.display_name,
        "repo_owner": owner,
        "repo_name": name,
        "ticket_url": item.url,
        "ticket_title": item.headline,
        "ticket_text": item.text,
        "payload": item.stored_payload,
        "overrides": item.overrides | ({"notify": NONE} if NONE in item.notify else {}),
        "requested_skills": list(item.skills),
        "tags": list(item.tags),
        "agent": item.agent,
        "retry_of": None,
        "chain_length": 0,
        "run_at": item.run_at.isoformat() if item.run_at else None,
        "delay": item.delay,
        "max_attempts": _first(item.max_attempts, limits.max_attempts),
        "max_retries": _first(item.max_retries, limits.max_retries),
        "on_lost": item.on_lost or limits.on_lost,
    }


def _request(row: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of a request that joined a live job: the requester, text and key."""
    text, key = row["ticket_text"], row["idempotency_key"]
    kept = {
        "requester": row["invoker_id"],
        "name": row["invoker_display_name"],
        "source": row["source"],
        "title": row["ticket_title"],
        "text": text[:MAX_KEPT_TEXT] if text else None,
        "url": row["ticket_url"],
        "key": None if key.startswith("auto:") else key,
        "digest": row["request_digest"],
    }
    return {name: value for name, value in kept.items() if value}


def _first(value: int | None, default: int) -> int:
    return default if value is None else value


def _conflict(row: dict[str, Any], item: store.SubmitResult) -> str:
    return (
        f"key {row['idempotency_key']!r} was used for D-{item.number} with another request"
        f" (digest {item.request_digest[:12]}, this one {row['request_digest'][:12]});"
        " use a new key, or send the same request"
    )
