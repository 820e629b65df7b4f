"""Jobs that wait for other jobs: trees, parents, and jobs that runs spawn and gather.

Modules of requests are imported by `spawn`: commands that only read need no models.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from draftsman.database.database import Connection, Database, on_connection
from draftsman.deliveries.store import deliveries
from draftsman.errors import Failure, UsageError
from draftsman.forges import store as forges
from draftsman.ids import job_name, unknown_job
from draftsman.jobs.job import TERMINAL, Source, Status
from draftsman.jobs.runs.run import ClaimedJob, RunStatus, lease_lost
from draftsman.jobs.runs.store import jobs as job_store
from draftsman.jobs.runs.store import run_state
from draftsman.people.actor import Actor
from draftsman.repos.repo_catalog import RepoName
from draftsman.repos.repo_url import is_repo_url
from draftsman.text import first_line
from draftsman.workflows import store
from draftsman.workflows.dependencies import JobTree, Parent, SpawnChange, cycle_text
from draftsman.workflows.service.groups import Groups

if TYPE_CHECKING:
    from draftsman.jobs.requests.invocation import Invocation
    from draftsman.jobs.runs.job_limits import JobLimits
    from draftsman.repos.service import Repos
    from draftsman.settings import Settings

TREE_LIMIT = 1000
"""Default number of jobs of a tree."""
LONGEST_WAIT: Final = 86_400.0 * 366
"""Seconds after which a job that gathers others looks again."""
SPAWN_FIELDS: Final = (
    "payload",
    "payload_version",
    "title",
    "text",
    "url",
    "agent",
    "repo",
    "ref",
    "mode",
    "overrides",
    "tags",
    "skills",
    "queue",
    "priority",
    "concurrency_key",
    "delay",
    "run_at",
    "max_attempts",
    "max_retries",
    "on_lost",
)
"""Fields of a request that `spawn` takes."""
SHOWN: Final = 300
"""Maximum characters of a request in an error."""


class OtherSpawn(UsageError):
    """The key of a spawned job came again with another request."""

    def __init__(self, key: str, number: int, before: str, now: str, digest: str) -> None:
        both = "" if before == now else f": {before}, now {now}"
        super().__init__(
            f"spawn({key!r}) made {job_name(number)} of another request{both}; use a new key, or"
            " keep what changes, such as a time, out of it (ctx.now() is the same in each run)"
        )
        self.number = number
        """The job that has the key."""
        self.before = before
        self.now = now
        self.digest = digest
        """That of the request now."""


class Workflows:
    """Trees of jobs, parents with their results, spawned jobs, and `groups`."""

    def __init__(self, *, db: Database, settings: Settings, repos: Callable[[], Repos]) -> None:
        self._db = db
        self._settings = settings
        self._repos = repos
        self.groups = Groups(db)

    @cached_property
    def _limits(self) -> JobLimits:
        from draftsman.jobs.runs.job_limits import configured_limits

        return configured_limits(self._settings)

    async def tree(self, job: int, limit: int = TREE_LIMIT) -> JobTree:
        """Return a job and all that wait for it, directly or not; raises NotFound."""
        async with self._db.connection() as conn, conn.transaction():
            tree = await store.tree(conn, job, limit)
        if not tree.jobs:
            raise unknown_job(job)
        return tree

    waiting_count = on_connection(store.waiting_count)
    parents = on_connection(store.parents)
    followed_pull = on_connection(forges.of_job)
    causes = on_connection(store.causes)

    async def spawn(
        self,
        spawner: ClaimedJob,
        key: str,
        type: str,
        fields: dict[str, Any],
        *,
        notify: bool = False,
    ) -> int:
        """Submit a job of a run, once for a key; return its number.

        A retry takes over a completed job with the same key and request. With `notify` the job has
        the targets of the run's job. Raises LeaseLost, UsageError for an invalid field, OtherSpawn
        for a key of another request, and NotFound for an unknown repository.
        """
        from draftsman.jobs.requests.service.request_rows import row
        from draftsman.jobs.requests.service.submissions import invocation
        from draftsman.jobs.requests.store import submissions

        if unknown := sorted(fields.keys() - set(SPAWN_FIELDS)):
            allowed = ", ".join(SPAWN_FIELDS)
            raise UsageError(f"spawn() does not take {unknown[0]!r}; allowed: {allowed}")
        if not key or len(key) > 400:
            raise UsageError("the key of spawn() must have 1 to 400 characters")
        request, repo_names = await self._with_repo(invocation(type=type, **fields))
        actor = Actor(Source.INTERNAL, spawner.invoker_id, spawner.invoker_id)
        columns = row(request, actor, self._limits, repo_names) | {
            "invoker_id": spawner.invoker_id,
            "idempotency_key": f"spawn:{spawner.number}:{key}",
        }

        async def insert(conn: Connection) -> int:
            if not await job_store.lock_run(conn, spawner.lease):
                raise lease_lost(spawner.lease)
            concurrency_key = columns["concurrency_key"]
            conflicts = await store.spawn_conflicts(conn, spawner.number, key, concurrency_key)
            if conflicts.key_holder is not None:
                holder = job_name(conflicts.key_holder)
                raise UsageError(
                    f"spawn({key!r}): the job would wait for {holder}, which has the concurrency"
                    f" key {concurrency_key!r} and waits for it; use a new key"
                )
            if conflicts.number is not None:
                if conflicts.digest != request.digest:
                    raise _other_request(key, conflicts, request)
                return conflicts.number
            if spawner.retry_of is not None:
                done = await store.completed_spawn(conn, spawner.number, key, request.digest)
                if done is not None:
                    await store.record_spawn(conn, spawner.lease, done)
                    return done
            columns["has_targets"] = notify and bool(await deliveries.targets(conn, spawner.number))
            (job,) = await submissions.submit(conn, [columns], f"internal:{spawner.name}")
            if columns["has_targets"]:
                await deliveries.inherit_targets(conn, spawner.number, job.number)
            await store.record_spawn(conn, spawner.lease, job.number)
            return job.number

        return await self._db.run_transaction(insert)

    async def _with_repo(self, request: Invocation) -> tuple[Invocation, dict[str, RepoName]]:
        """Find the repository of a request by its name; return the name by its URL."""
        if request.repo is None:
            return request, {}
        if not is_repo_url(request.repo):
            from draftsman.jobs.requests.invocation import RepoResolution

            location = await self._repos().place(request.repo)
            resolution = RepoResolution(path=location.path)
            resolved = {"repo": location.repo.remote_url, "resolution": resolution}
            request = request.model_copy(update=resolved)
        assert request.repo is not None  # noqa: S101 - set above
        catalog = await self._repos().catalog()
        return request, catalog.names_of([request.repo])

    async def spawn_change(self, spawner: ClaimedJob, key: str) -> SpawnChange | None:
        """Return the last other request that runs of a job made with the key of a spawned job."""
        async with self._db.connection() as conn:
            return await store.spawn_change(conn, spawner.number, key)

    async def spawned(self, spawner: ClaimedJob, job: int) -> Parent:
        """Return a job that a run spawned; raises UsageError for another job."""
        async with self._db.connection() as conn:
            children = await store.spawned(conn, spawner.number, [job])
        if not children:
            raise UsageError(f"{job_name(job)} was not spawned by this job")
        return children[0]

    async def is_spawned(self, spawner: ClaimedJob) -> bool:
        """Return whether another job spawned the job of a run."""
        async with self._db.connection() as conn:
            return await store.spawner(conn, spawner.number) is not None

    async def ended(self, spawner: ClaimedJob, jobs: Sequence[int]) -> list[Parent] | None:
        """Return the jobs that a run spawned, in this order; None if one has not ended.

        Raises UsageError for another job.
        """
        async with self._db.connection() as conn:
            return await _ended(conn, spawner, jobs)

    async def gather(self, spawner: ClaimedJob, jobs: Sequence[int]) -> list[Parent] | None:
        """Return the jobs that a run spawned, in this order; None if the run was parked for them.

        Raises LeaseLost, UsageError for another job, and Failure (`wait_cycle`, permanent) if the
        jobs wait for a concurrency key of this job, directly or not.
        """

        async def wait(conn: Connection) -> list[Parent] | None:
            unfinished = await store.await_jobs(conn, spawner.lease, jobs)
            if unfinished is None:
                raise lease_lost(spawner.lease)
            if not unfinished:
                return await _ended(conn, spawner, jobs)
            await _refuse_cycle(conn, spawner)
            ending = run_state.RunEnd(Status.SCHEDULED, RunStatus.PARKED, delay=LONGEST_WAIT)
            if await run_state.settle(conn, spawner.lease, ending) is None:
                raise lease_lost(spawner.lease)
            return None

        return await self._db.run_transaction(wait)


def _other_request(key: str, conflicts: store.SpawnConflicts, request: Invocation) -> OtherSpawn:
    """Return the error for a key that has a job of another request, with both."""
    requests = ((conflicts.type, conflicts.payload), (request.type, request.payload))
    before, now = (first_line(f"{type} {json.dumps(payload)}", SHOWN) for type, payload in requests)
    return OtherSpawn(key, conflicts.number or 0, before, now, request.digest)


async def _ended(conn: Connection, spawner: ClaimedJob, jobs: Sequence[int]) -> list[Parent] | None:
    spawned = {item.number: item for item in await store.spawned(conn, spawner.number, jobs)}
    if other := [number for number in jobs if number not in spawned]:
        raise UsageError(f"{job_name(other[0])} was not spawned by this job")
    ended = all(item.status in TERMINAL for item in spawned.values())
    return [spawned[number] for number in jobs] if ended else None


async def _refuse_cycle(conn: Connection, spawner: ClaimedJob) -> None:
    waits_for_key, cycle = await store.wait_cycle(conn, spawner.number)
    if waits_for_key and not cycle:
        await store.lock_waits(conn)
        _, cycle = await store.wait_cycle(conn, spawner.number)
    if cycle:
        raise Failure(
            f"{spawner.name} would wait for itself: it waits for {cycle_text(cycle)}",
            code="wait_cycle",
            declared="PERMANENT",
        )
