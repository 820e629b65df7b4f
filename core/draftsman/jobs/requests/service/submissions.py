"""Submission of jobs, deduplicated by idempotency key and subject.

A batch of requests goes through the steps of `Submissions.submit_each`, which are below it in this
order.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, Protocol
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
from draftsman.database.recent_lookups import RecentLookups
from draftsman.database.schema import limit_lock_waits
from draftsman.deliveries.delivery import DeliveryKind
from draftsman.deliveries.target import Target, Targets, parse
from draftsman.errors import (
    DraftsmanError,
    IdempotencyConflict,
    LostRace,
    OptionHint,
    UsageError,
)
from draftsman.ids import job_name, new_id
from draftsman.job_types.published.service import PublishedTypes
from draftsman.jobs.job import Source, Status
from draftsman.jobs.requests import payloads as job_payloads
from draftsman.jobs.requests.attachments import rows_of
from draftsman.jobs.requests.batch_plan import BatchPlan, plan_batch
from draftsman.jobs.requests.invocation import Invocation, RecentDuplicate, SubmitResult
from draftsman.jobs.requests.payload_batch import SHARED, PayloadBatch
from draftsman.jobs.requests.service.attachments import check_channel
from draftsman.jobs.requests.service.batching import Batcher
from draftsman.jobs.requests.service.described_types import apply_descriptions
from draftsman.jobs.requests.service.insertion import NewRequest, insert
from draftsman.jobs.requests.service.request_rows import rows
from draftsman.jobs.requests.service.submission_trace import traced_submission
from draftsman.jobs.requests.store import attachments
from draftsman.jobs.requests.store import submissions as store
from draftsman.jobs.retries import BUILT_IN
from draftsman.jobs.runs.job_limits import JobLimits
from draftsman.json_schemas.checker import SchemaChecker
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.repos import store as repos
from draftsman.repos.repo_catalog import Catalog, Repo, RepoName
from draftsman.repos.repo_url import is_folder
from draftsman.repos.repo_url import parse as parse_repo

LOCAL_SOURCES = frozenset(Source)
"""Sources whose requests may name a folder of the worker's machine; those of channels may not."""
SUBMIT_ATTEMPTS = 5
"""Maximum attempts to read rows that a concurrent duplicate is committing."""
SHARED_LOCK_WAIT: Final = 0.1
"""Seconds that requests of several callers wait for a lock; then each waits alone."""
WARNINGS_AGE: Final = 1.0
"""Seconds for which the warnings about types are kept."""
_NOTIFICATION_TYPE = "send_notification"


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


SubmittedRequest = SubmittedJob | LostRace | IdempotencyConflict
"""The job of a request, or its error."""


class LinkedRequest(NamedTuple):
    """A request of a batch with its job, which may wait for other jobs."""

    invocation: Invocation
    actor: str
    is_operator: bool
    """Whether its actor may control jobs of others."""
    job: int
    is_new: bool
    parents: Sequence[int]
    """The jobs that it names."""


class Links(Protocol):
    """The links between jobs, which `workflows` stores in the transaction of a submission."""

    async def require_jobs(self, conn: Connection, jobs: Collection[int]) -> None:
        """Raise NotFound unless all of these jobs exist."""

    async def link(self, conn: Connection, requests: Sequence[LinkedRequest]) -> set[int]:
        """Let the new jobs wait for their parents, and add them to their groups.

        Parents are before their children. Return the jobs that were canceled at once. Raises
        LostRace for a parent that is younger than the job.
        """


class Submissions:
    """Validation and insertion of requests."""

    def __init__(
        self,
        *,
        db: Database,
        policy: Policy,
        limits: JobLimits,
        targets: Targets,
        links: Links,
        published: PublishedTypes,
        schemas: SchemaChecker,
        catalog: Callable[[], Awaitable[Catalog]],
        type_warnings: Callable[[Collection[str]], Awaitable[dict[str, str]]],
    ) -> None:
        """`catalog` returns the registered repositories.

        `type_warnings` returns the warnings about types that no worker handles.
        """
        self._catalog = catalog
        self._type_warnings = RecentLookups(type_warnings, age=WARNINGS_AGE)
        self._db = db
        self._policy = policy
        self._limits = limits
        self._targets = targets
        self._links = links
        self._published = published
        self._schemas = schemas
        self._batcher: Batcher[NewRequest, SubmittedRequest] = Batcher(self._insert_shared)

    async def submit(self, invocation: Invocation, actor: Actor) -> SubmittedJob:
        """Create the job of this invocation, or return the existing job.

        Calls that meet share a transaction. A CancelledError whose argument is a SubmittedJob came
        too late: the job exists. Raises NotPermitted, IdempotencyConflict when the key was used for
        a different request, and UsageError when the payload does not fit its type.
        """
        return (await self.submit_many([invocation], actor))[0]

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
        requests = [(invocation, actor) for invocation in invocations]
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
    ) -> list[SubmittedRequest]:
        """Create the jobs of several actors in one transaction; return the job or error of each.

        Raises NotPermitted and UsageError for any of them, before a job is created.
        """
        with traced_submission(len(requests)) as trace:
            jobs = await self._submit_each(requests, connection)
            for (request, _), job in zip(requests, jobs, strict=True):
                if isinstance(job, SubmittedJob) and job.outcome == "created":
                    trace.created(job.id, job.number, request.type, request.queue)
        return jobs

    async def _submit_each(
        self,
        requests: Sequence[tuple[Invocation, Actor]],
        connection: CallersConnection | None,
    ) -> list[SubmittedRequest]:
        plan = plan_batch([invocation for invocation, _ in requests])
        batch = self._authorize(requests)
        await self._prepare(batch, connection)
        if plan.is_linked:
            results = await self._insert_linked(batch, plan, connection)
        elif len(batch) == 1 and connection is None and not _locks(batch[0]):
            return [await self._batcher.submit(batch[0])]
        else:
            results = await self._insert_unlinked(batch, plan, connection)
        return _submitted_jobs(batch, results)

    async def submit_payloads(
        self,
        request: Invocation,
        batch: PayloadBatch,
        actor: Actor,
        *,
        connection: CallersConnection | None = None,
    ) -> list[SubmittedJob]:
        """Create the job of a request with each of these payloads, as `submit_many` does.

        The columns of the request are made once where they do not depend on its payload.
        """
        type = (await self._published.of({request.type})).get(request.type)
        (shared,) = self._authorize([(request, actor)])
        shared.payloads = batch.payloads
        if not (type and (type.title or type.concurrency)) and _is_shareable(request):
            await self._prepare([shared], connection)
            if not shared.targets:
                with traced_submission(len(batch.payloads)) as trace:
                    jobs = await self._insert_payloads(shared, batch, connection)
                    for job in jobs:
                        trace.created(job.id, job.number, request.type, request.queue)
                return jobs
        requests = [request.model_copy(update={"payload": payload}) for payload in batch.payloads]
        return await self.submit_many(requests, actor, connection=connection)

    async def _insert_payloads(
        self, shared: NewRequest, batch: PayloadBatch, connection: CallersConnection | None
    ) -> list[SubmittedJob]:
        """Insert a job with each payload, which cannot exist yet."""
        ids = [new_id() for _ in batch.texts]
        digests = batch.digests(shared.invocation)
        async with self._connection(connection) as conn:
            created = await store.submit_payloads(
                conn, shared.columns, ids, batch.texts, digests, shared.actor
            )
        return [
            SubmittedJob(
                number,
                id,
                Status.SCHEDULED if scheduled else Status.QUEUED,
                "created",
                None,
                shared.warning,
            )
            for id, (_, number, scheduled) in zip(ids, created, strict=True)
        ]

    async def _prepare(
        self, batch: Sequence[NewRequest], connection: CallersConnection | None
    ) -> None:
        """Check requests and fill them in; raises NotPermitted and UsageError."""
        await apply_descriptions(batch, self._published, self._limits)
        await self._set_columns(batch, connection)
        await self._check_output_schemas(batch)
        await self._refuse_folders(batch, connection)
        self._set_targets(batch)
        _set_files(batch)
        warnings = await self._type_warnings.of({request.invocation.type for request in batch})
        for request in batch:
            request.warning = warnings.get(request.invocation.type)

    def _authorize(self, requests: Sequence[tuple[Invocation, Actor]]) -> list[NewRequest]:
        """Return the requests with person and roles of their actors; raises NotPermitted."""
        accounts: dict[int, Actor] = {}
        batch = []
        for invocation, actor in requests:
            if id(actor) not in accounts:
                account = self._policy.resolve(actor)
                self._policy.check(account, Verb.SUBMIT)
                accounts[id(actor)] = account
            account = accounts[id(actor)]
            batch.append(NewRequest(invocation, account=account, actor=account.name))
        return batch

    async def _set_columns(
        self, batch: Sequence[NewRequest], connection: CallersConnection | None
    ) -> None:
        """Set the columns of each job; raises UsageError for a payload that does not fit its type.

        A repository has the name under which it is registered.
        """
        sources = {source for request in batch if (source := request.invocation.repo)}
        repo_names: dict[str, RepoName] = {}
        if sources:
            repo_names = await self._repo_names(sources, connection)
        requests = [(request.invocation, request.account) for request in batch]
        columns = rows(requests, self._limits, repo_names)
        for request, values in zip(batch, columns, strict=True):
            request.columns = values

    async def _repo_names(
        self, sources: Collection[str], connection: CallersConnection | None
    ) -> dict[str, RepoName]:
        """Return the name of each source; a caller's transaction sees the repositories it added."""
        if connection is None:
            return (await self._catalog()).names_of(sources)
        addresses = []
        for source in sources:
            with suppress(UsageError):  # a source that only git understands
                addresses.append(Repo.at(parse_repo(source)))
        async with self._connection(connection) as conn:
            return Catalog(await repos.repos_at(conn, addresses)).names_of(sources)

    async def _check_output_schemas(self, batch: Sequence[NewRequest]) -> None:
        """Raise UsageError for an output schema that is invalid or cannot be checked."""
        schemas: dict[str, tuple[str, Any]] = {}
        for request in batch:
            type = request.invocation.type
            if type in job_payloads.MODELS and type not in self._limits.replaced:
                schema = job_payloads.output_schema(type, request.invocation.payload)
                if schema is not None:
                    schemas.setdefault(json.dumps(schema), (type, schema))
        for type, schema in schemas.values():
            if (problem := await self._schemas.schema_problem(schema)) is not None:
                raise UsageError(f"payload of {type}: output: {problem}")

    async def _refuse_folders(
        self, batch: Sequence[NewRequest], connection: CallersConnection | None
    ) -> None:
        """Raise UsageError if a request from chat names a folder that is not registered."""
        for request in batch:
            if request.account.channel in LOCAL_SOURCES:
                continue
            about = request.invocation.stored_payload.get("repo")
            source = about.get("source") if isinstance(about, dict) else about
            if not source or not is_folder(str(source)):
                continue
            async with self._connection(connection) as conn:
                if not await _is_registered(conn, str(source)):
                    raise UsageError(
                        "requests from chat cannot name a local folder; use the name of a"
                        " registered repository, or a URL"
                    )

    def _set_targets(self, batch: Sequence[NewRequest]) -> None:
        """Set the notification targets of each request; validate those in its payload too.

        Raises UsageError for an unknown target, and for a notification without any.
        """
        for request in batch:
            invocation = request.invocation
            targets = self._targets.of(invocation.notify)
            if (
                invocation.type == _NOTIFICATION_TYPE
                and invocation.type not in self._limits.replaced
            ):
                self._check_notification(invocation, targets)
            if targets:
                request.targets = targets
                request.columns["has_targets"] = True

    def _check_notification(self, invocation: Invocation, targets: Sequence[Target]) -> None:
        texts = job_payloads.notification_targets(invocation.payload)
        payload_targets = [parse(text) for text in texts]
        for target in payload_targets:
            self._targets.check(target)
        if not payload_targets and not any(
            DeliveryKind.NOTICE in target.kinds for target in targets
        ):
            raise UsageError(
                "the notification has no targets",
                hint=OptionHint("notify", lead="add targets to its payload, or use"),
            )

    async def _insert_shared(
        self, requests: Sequence[NewRequest]
    ) -> Sequence[SubmittedRequest | None]:
        """Insert requests without parents and locks of several callers in one transaction.

        None is returned for those that others are still committing. Raises an error other than
        DatabaseUnreachable only if nothing was inserted.
        """
        plan = plan_batch([request.invocation for request in requests])
        if len(requests) == 1:
            return _submitted_jobs(requests, await self._insert_unlinked(requests, plan, None))
        work = partial(self._insert_in_transaction, requests, plan.order, SHARED_LOCK_WAIT)
        results = await retry_conflicts(work)
        results |= _results_of_repeated(plan, results)
        return [
            _submitted_job(0, request, results[index]) if index in results else None
            for index, request in enumerate(requests)
        ]

    async def _insert_unlinked(
        self, batch: Sequence[NewRequest], plan: BatchPlan, connection: CallersConnection | None
    ) -> dict[int, SubmitResult]:
        """Insert requests without parents; leave out those that others are still committing."""
        results: dict[int, SubmitResult] = {}
        for _ in range(SUBMIT_ATTEMPTS):
            missing = [index for index in plan.order if index not in results]
            if not missing:
                break
            if connection is not None:
                async with self._connection(connection) as conn:
                    results |= await insert(conn, batch, missing, self._policy)
            else:
                work = partial(self._insert_in_transaction, batch, missing)
                results |= await retry_conflicts(work)
        return results | _results_of_repeated(plan, results)

    async def _insert_in_transaction(
        self, batch: Sequence[NewRequest], indexes: Sequence[int], lock_wait: float | None = None
    ) -> dict[int, SubmitResult]:
        """Insert requests; a single statement without locks needs no transaction.

        Raises LostRace where a request waits for longer than `lock_wait`, in seconds.
        """
        requests = [batch[index] for index in indexes]
        needs_transaction = len({request.actor for request in requests}) > 1 or any(
            _locks(request) or request.files or (lock_wait is not None and request.invocation.key)
            for request in requests
        )
        if needs_transaction:
            async with self._db.transaction() as conn:
                if lock_wait is not None:
                    await limit_lock_waits(conn, lock_wait)
                return await insert(conn, batch, indexes, self._policy)
        async with self._db.connection() as conn:
            return await insert(conn, batch, indexes, self._policy)

    async def _insert_linked(
        self, batch: Sequence[NewRequest], plan: BatchPlan, connection: CallersConnection | None
    ) -> dict[int, SubmitResult]:
        """Insert a batch with parents or groups in a transaction; all of its jobs exist, or none.

        Raises LostRace, IdempotencyConflict, and NotFound and UsageError for a parent or group.
        """

        async def attempt() -> dict[int, SubmitResult]:
            async with self._connection(connection) as conn, conn.transaction():
                return await self._insert_and_link(conn, batch, plan)

        for _ in range(SUBMIT_ATTEMPTS - 1):
            with suppress(LostRace):
                return await (attempt() if connection else retry_conflicts(attempt))
        return await (attempt() if connection else retry_conflicts(attempt))

    async def _insert_and_link(
        self, conn: Connection, batch: Sequence[NewRequest], plan: BatchPlan
    ) -> dict[int, SubmitResult]:
        """Insert all requests of a batch, then link their jobs; an old job keeps its parents."""
        await self._links.require_jobs(conn, plan.parent_jobs)
        results = await insert(conn, batch, plan.order, self._policy)
        results |= _results_of_repeated(plan, results)
        for place, request in enumerate(batch):
            job = _submitted_job(place, request, results.get(place))
            if isinstance(job, DraftsmanError):
                raise job
        linked = [_linked_request(index, batch, plan, results) for index in plan.order]
        canceled = await self._links.link(conn, linked)
        for linked_request in linked:
            parent = linked_request.invocation.attachments_of
            if parent is not None and linked_request.is_new:
                await attachments.inherit(conn, parent, linked_request.job)
        return {
            index: result._replace(status=Status.CANCELED) if result.number in canceled else result
            for index, result in results.items()
        }

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

    async def postpone_until_commit(self, connection: CallersConnection) -> None:
        """Let the commit of a caller's transaction take the locks that workers need.

        The transaction may stay open for any time.
        """
        async with self._connection(connection) as conn:
            await store.postpone_until_commit(conn)

    @asynccontextmanager
    async def _connection(self, connection: CallersConnection | None) -> AsyncIterator[Connection]:
        """Yield the connection of the caller, else a pooled connection."""
        if connection is None:
            async with self._db.connection() as conn:
                yield conn
            return
        with translate_errors():
            yield adapt(connection)


async def _is_registered(conn: Connection, folder: str) -> bool:
    """Return whether a folder is registered as a repository."""
    try:
        repo = Repo.at(parse_repo(folder))
    except UsageError:
        return False
    registered = await repos.repos_at(conn, [repo])
    return any(known.remote_url == repo.remote_url for known in registered)


def _is_shareable(request: Invocation) -> bool:
    """Return whether jobs of a request with other payloads have all other columns in common."""
    return request.type not in BUILT_IN and request.model_fields_set <= SHARED


def _locks(request: NewRequest) -> bool:
    """Return whether a request may join a job, which locks what they have in common."""
    return bool(request.columns["subject_key"] or request.invocation.unique)


def _set_files(batch: Sequence[NewRequest]) -> None:
    """Set the rows of attachments; raises UsageError for a channel without files."""
    for request in batch:
        if request.invocation.attachments:
            check_channel(request.account)
            request.files = rows_of(request.invocation.attachments)


def _results_of_repeated(
    plan: BatchPlan, results: Mapping[int, SubmitResult]
) -> dict[int, SubmitResult]:
    """Return the results of the requests that repeat the key of an earlier request."""
    return {
        index: results[first]._replace(outcome="deduplicated")
        for index, first in plan.repeated.items()
        if first in results
    }


def _submitted_jobs(
    batch: Sequence[NewRequest], results: Mapping[int, SubmitResult]
) -> list[SubmittedRequest]:
    """Return the job of each request with the warning about its type, or its error."""
    return [
        _submitted_job(place, request, results.get(place)) for place, request in enumerate(batch)
    ]


def _linked_request(
    index: int, batch: Sequence[NewRequest], plan: BatchPlan, results: Mapping[int, SubmitResult]
) -> LinkedRequest:
    """Return a request with its job and the jobs that it names as parents."""
    request = batch[index]
    return LinkedRequest(
        invocation=request.invocation,
        actor=request.actor,
        is_operator=request.account.owner or "operator" in request.account.roles,
        job=results[index].number,
        is_new=results[index].outcome == "created",
        parents=[
            parent if isinstance(parent, int) else results[parent.index].number
            for parent in plan.parents[index]
        ],
    )


def _submitted_job(
    place: int, request: NewRequest, result: SubmitResult | None
) -> SubmittedRequest:
    """Return the job of a request, or its error."""
    if result is None:
        return LostRace(
            "another request with the same key or subject is being committed; try again"
        )
    digest = request.columns["request_digest"]
    if result.outcome == "deduplicated" and result.request_digest != digest:
        key = request.columns["idempotency_key"]
        return IdempotencyConflict(
            f"key {key!r} was already used for {job_name(result.number)} with a different request;"
            " use a new key, or send the same request",
            job=result.number,
            place=place,
        )
    return SubmittedJob(
        number=result.number,
        id=result.id,
        status=result.status,
        outcome=result.outcome,
        replaced=result.replaced,
        warning=request.warning,
    )


def invocation(**fields: Any) -> Invocation:
    """Build an Invocation; raises FieldError with a one-line message."""
    try:
        return Invocation(**fields)
    except ValidationError as error:
        raise field_errors.field_error(
            error, default="request", shows=lambda field: field != "repo"
        ) from None
