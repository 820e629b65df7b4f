"""Submission of jobs, deduplicated by idempotency key and subject."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from pydantic import ValidationError

from draftsman import field_errors
from draftsman.database.caller_connection import CallersConnection, adapt
from draftsman.database.database import (
    Connection,
    Database,
    translate_errors,
)
from draftsman.database.database_connection import retry_conflicts
from draftsman.deliveries.delivery import DeliveryKind
from draftsman.deliveries.target import Target, Targets, parse
from draftsman.errors import (
    DraftsmanError,
    IdempotencyConflict,
    LostRace,
    OptionHint,
    UsageError,
)
from draftsman.ids import job_name
from draftsman.jobs.job import Source, Status
from draftsman.jobs.requests import payloads as job_payloads
from draftsman.jobs.requests.invocation import Invocation, RecentDuplicate, SubmitResult, same_keys
from draftsman.jobs.requests.service import unique_work
from draftsman.jobs.requests.service.request_rows import NewRequest, insert, rows, set_default_keys
from draftsman.jobs.requests.store import submissions as store
from draftsman.jobs.runs.job_limits import JobLimits
from draftsman.json_schemas.checker import SchemaChecker
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.repos import store as repos
from draftsman.repos.repo_catalog import Repo, repo_columns, repo_names_by_source
from draftsman.repos.repo_url import is_folder
from draftsman.repos.repo_url import parse as parse_repo

if TYPE_CHECKING:
    from draftsman.workflows.service.linked_requests import Plan

CHAT_SOURCES = frozenset({Source.SLACK, Source.TRELLO})
"""Sources whose requests may not name a folder of the worker's machine."""
SUBMIT_ATTEMPTS = 5
"""Maximum attempts to read rows that a concurrent duplicate is committing."""
MAX_REPOS = 5000
"""Maximum number of repositories read."""
_NOTIFICATION_TYPE = "send_notification"
WARNINGS_AGE: Final = 1.0
"""Seconds for which the warnings about types are kept."""
_Request = tuple[Invocation, Actor]


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """The job of a request; `outcome` is created, deduplicated or joined."""

    number: int
    id: UUID
    status: Status
    outcome: str
    replaced: int | None = None
    """The job that this one replaces, which was canceled before its start."""
    warning: str | None = None
    """Why the job may wait for long: no worker is known to handle its type."""

    @property
    def name(self) -> str:
        """The display name, such as `D-142`."""
        return job_name(self.number)


class Submissions:
    """Validation and insertion of requests."""

    def __init__(
        self,
        db: Database,
        policy: Policy,
        limits: JobLimits,
        targets: Targets,
        type_warnings: Callable[[Collection[str]], Awaitable[dict[str, str]]],
    ) -> None:
        """`type_warnings` returns the warnings about types that no worker handles."""
        self._type_warnings = type_warnings
        self._known_warnings: dict[str, str | None] = {}
        self._known_until = 0.0
        self._db = db
        self._policy = policy
        self._limits = limits
        self._targets = targets

    async def submit(self, invocation: Invocation, actor: Actor) -> SubmittedJob:
        """Create the job of this invocation, or return the existing job.

        Raises NotPermitted, IdempotencyConflict when the key was used for a different request, and
        UsageError when the payload does not fit its built-in type.
        """
        return (await self.submit_many([invocation], actor))[0]

    async def postpone_until_commit(self, connection: CallersConnection) -> None:
        """Let the commit of a caller's transaction take the locks that workers need.

        The transaction may stay open for any time.
        """
        async with self._connection(connection) as conn:
            await store.postpone_until_commit(conn)

    async def submit_many(
        self,
        invocations: Sequence[Invocation],
        actor: Actor,
        *,
        connection: CallersConnection | None = None,
    ) -> list[SubmittedJob]:
        """Create the jobs in one statement; results are in the order of the invocations.

        With the caller's `connection`, all statements run in its transaction. Otherwise the batch
        is not atomic: an IdempotencyConflict names the first conflicting key, and the other jobs
        exist by then; the same batch can be sent again safely.
        """
        requests = [(item, actor) for item in invocations]
        jobs = []
        for job in await self.submit_each(requests, connection=connection):
            if isinstance(job, DraftsmanError):
                raise job
            jobs.append(job)
        return jobs

    async def submit_each(
        self,
        requests: Sequence[tuple[Invocation, Actor]],
        *,
        connection: CallersConnection | None = None,
    ) -> list[SubmittedJob | LostRace | IdempotencyConflict]:
        """Create the jobs of several actors in one transaction; return the job or error of each.

        Raises NotPermitted and UsageError for any of them, before a job is created.
        """
        linked = None
        if any(item.after or item.name or item.group for item, _ in requests):
            from draftsman.workflows.service.linked_requests import plan

            linked = plan([item for item, _ in requests])
        resolved, names = self._authorize(requests)
        values = rows(resolved, self._limits)
        await self._set_repo_names(resolved, values, connection)
        set_default_keys(values, self._limits)
        await self._check_schemas(resolved)
        await self._refuse_folders(resolved, connection)
        batch = []
        for (item, account), name, columns in zip(resolved, names, values, strict=True):
            targets = self._targets_for(item)
            if targets:
                columns["has_targets"] = True
            unique = unique_work.request_of(item, account, self._policy)
            files = _files(item, account)
            is_operator = account.owner or "operator" in account.roles
            batch.append(
                NewRequest(columns, targets, name, unique, item.parent_names, files, is_operator)
            )
        twins = same_keys([item for item, _ in resolved])
        results: list[SubmitResult | None] = [None] * len(batch)
        if linked is not None:
            results = [*await self._send_linked(linked, batch, twins, connection)]
        for _ in range(SUBMIT_ATTEMPTS):
            missing = [
                index
                for index, result in enumerate(results)
                if result is None and index not in twins
            ]
            if not missing:
                break
            rest = [batch[index] for index in missing]
            if connection is not None:
                async with self._connection(connection) as conn:
                    inserted = await insert(conn, rest)
            else:
                inserted = await retry_conflicts(partial(self._send, rest))
            for place, result in inserted:
                results[missing[place]] = result
        for index, first in twins.items():
            if (earlier := results[first]) is not None:
                results[index] = earlier._replace(outcome="deduplicated")
        warnings = await self._warnings({item.type for item, _ in resolved})
        return [
            _outcome(place, columns, result, warnings.get(str(columns["type"])))
            for place, (columns, result) in enumerate(zip(values, results, strict=True))
        ]

    async def _warnings(self, types: Collection[str]) -> dict[str, str]:
        """Return the warnings about types, which a second of submissions asks for once."""
        now = time.monotonic()
        if now > self._known_until:
            self._known_warnings = {}
            self._known_until = now + WARNINGS_AGE
        known = self._known_warnings  # another submission may replace them meanwhile
        if missing := [type for type in types if type not in known]:
            found = await self._type_warnings(missing)
            known |= {type: found.get(type) for type in missing}
        return {type: text for type in types if (text := known[type]) is not None}

    def _authorize(
        self, requests: Sequence[tuple[Invocation, Actor]]
    ) -> tuple[list[_Request], list[str]]:
        """Return the requests with person and roles of their actors, and the actors' names.

        Raises NotPermitted.
        """
        resolved: dict[int, tuple[Actor, str]] = {}
        authorized = []
        names = []
        for item, actor in requests:
            if (known := resolved.get(id(actor))) is None:
                account = self._policy.resolve(actor)
                self._policy.check(account, Verb.SUBMIT)
                known = resolved[id(actor)] = account, account.name
            authorized.append((item, known[0]))
            names.append(known[1])
        return authorized, names

    @asynccontextmanager
    async def _connection(self, connection: CallersConnection | None) -> AsyncIterator[Connection]:
        """Yield the connection of the caller, else a pooled connection."""
        if connection is None:
            async with self._db.connection() as own:
                yield own
            return
        with translate_errors():
            yield adapt(connection)

    async def _set_repo_names(
        self,
        requests: Sequence[_Request],
        values: Sequence[dict[str, Any]],
        connection: CallersConnection | None,
    ) -> None:
        """Set the repository name of each row where the repository is registered."""
        sources = {item.repo for item, _ in requests if item.repo}
        if not sources:
            return
        async with self._connection(connection) as conn:
            names = repo_names_by_source(await repos.all_repos(conn, MAX_REPOS), sources)
        for (item, _), columns in zip(requests, values, strict=True):
            if item.repo:
                columns.update(repo_columns(names[item.repo]))

    async def _refuse_folders(
        self, requests: Sequence[_Request], connection: CallersConnection | None
    ) -> None:
        """Raise UsageError if a request from chat names a folder that is not registered."""
        for item, actor in requests:
            if actor.channel not in CHAT_SOURCES:
                continue
            about = item.stored_payload.get("repo")
            source = about.get("source") if isinstance(about, dict) else about
            if not source or not is_folder(str(source)):
                continue
            async with self._connection(connection) as conn:
                if not await _is_registered(conn, str(source)):
                    raise UsageError(
                        "requests from chat cannot name a local folder; use the name of a"
                        " registered repository, or a URL"
                    )

    async def _check_schemas(self, requests: Sequence[_Request]) -> None:
        """Raise UsageError for an output schema that is invalid or cannot be checked."""
        schemas: dict[str, tuple[str, Any]] = {}
        for item, _ in requests:
            if item.type in job_payloads.MODELS and item.type not in self._limits.replaced:
                schema = job_payloads.output_schema(item.type, item.payload)
                if schema is not None:
                    schemas.setdefault(json.dumps(schema), (item.type, schema))
        if not schemas:
            return
        async with SchemaChecker() as checker:
            for type, schema in schemas.values():
                if (problem := await checker.schema_problem(schema)) is not None:
                    raise UsageError(f"payload of {type}: output: {problem}")

    async def recent_duplicates(
        self, jobs: Sequence[tuple[int, Target]], seconds: float
    ) -> list[RecentDuplicate | None]:
        """Return for each job another job with its invoker and text that reports to the target.

        It was submitted less than `seconds` before, by the database's clock, and is not canceled.
        """
        async with self._db.connection() as conn:
            duplicates = await store.recent_duplicates(
                conn, [(job, target.channel, target.target) for job, target in jobs], seconds
            )
        return [duplicates.get(job) for job, _ in jobs]

    def _targets_for(self, item: Invocation) -> list[Target]:
        """Return the notification targets of a request; validate those in its payload too.

        Raises UsageError for an unknown target, and for a notification without any.
        """
        targets = self._targets.of(item.notify)
        if item.type == _NOTIFICATION_TYPE and item.type not in self._limits.replaced:
            payload_targets = [
                parse(text) for text in job_payloads.notification_targets(item.payload)
            ]
            for target in payload_targets:
                self._targets.check(target)
            if not payload_targets and not any(
                DeliveryKind.NOTICE in target.kinds for target in targets
            ):
                raise UsageError(
                    "the notification has no targets",
                    hint=OptionHint("notify", lead="add targets to its payload, or use"),
                )
        return targets

    async def _send(self, batch: Sequence[NewRequest]) -> list[tuple[int, SubmitResult]]:
        """Insert a batch: in one statement, or in a transaction with locks or several actors."""
        simple = not any(
            item.values["subject_key"] or item.unique or item.attachments for item in batch
        )
        if simple and len({item.actor for item in batch}) == 1:
            async with self._db.connection() as conn:
                return await insert(conn, batch)
        async with self._db.transaction() as conn:
            return await insert(conn, batch)

    async def _send_linked(
        self,
        linked: Plan,
        batch: Sequence[NewRequest],
        twins: Mapping[int, int],
        connection: CallersConnection | None,
    ) -> list[SubmitResult]:
        """Insert a batch with dependencies in a transaction; all of its jobs exist, or none."""
        from draftsman.workflows.service.linked_requests import insert_linked

        async def attempt() -> list[SubmitResult]:
            async with self._connection(connection) as conn, conn.transaction():
                results = await insert_linked(conn, linked, batch, twins)
                for place, result in enumerate(results):
                    outcome = _outcome(place, batch[place].values, result, None)
                    if isinstance(outcome, DraftsmanError):
                        raise outcome
                return results

        for _ in range(SUBMIT_ATTEMPTS - 1):
            with suppress(LostRace):
                return await (attempt() if connection else retry_conflicts(attempt))
        return await (attempt() if connection else retry_conflicts(attempt))


def _files(item: Invocation, actor: Actor) -> list[dict[str, Any]]:
    """Return the rows of a request's files; raises UsageError for a channel without files."""
    if not item.attachments:
        return []
    from draftsman.jobs.requests.attachments import rows_of
    from draftsman.jobs.requests.service.attachments import check_channel

    check_channel(actor)
    return rows_of(item.attachments)


def _outcome(
    place: int, values: dict[str, Any], item: SubmitResult | None, warning: str | None
) -> SubmittedJob | LostRace | IdempotencyConflict:
    """Return the job of a request, or its error."""
    if item is None:
        return LostRace(
            "another request with the same key or subject is being committed; try again"
        )
    if item.outcome == "deduplicated" and item.request_digest != values["request_digest"]:
        return IdempotencyConflict(_conflict(values, item), job=item.number, place=place)
    return SubmittedJob(item.number, item.id, item.status, item.outcome, item.replaced, warning)


async def _is_registered(conn: Connection, folder: str) -> bool:
    """Return whether a folder is registered as a repository."""
    try:
        repo = Repo.at(parse_repo(folder))
    except UsageError:
        return False
    registered = await repos.find_conflict(conn, repo)
    return registered is not None and registered.remote_url == repo.remote_url


def invocation(**fields: Any) -> Invocation:
    """Build an Invocation; raises FieldError with a one-line message."""
    try:
        return Invocation(**fields)
    except ValidationError as error:
        raise field_errors.field_error(
            error, default="request", shows=lambda field: field != "repo"
        ) from None


def _conflict(row: dict[str, Any], item: SubmitResult) -> str:
    return (
        f"key {row['idempotency_key']!r} was already used for {job_name(item.number)} with a"
        f" different request (digest {item.request_digest[:12]}, now {row['request_digest'][:12]});"
        " use a new key, or send the same request"
    )
