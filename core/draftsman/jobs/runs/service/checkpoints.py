"""Data that a run saves: checkpoints, steps, events, artifacts and logs.

Every write proves the run's lease; after LeaseLost the run must stop and write nothing more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from draftsman.database.database import Connection, Database, on_connection
from draftsman.errors import NotFound, UsageError
from draftsman.ids import job_name, new_id
from draftsman.jobs.reserved_names import BUNDLE, Owner, check_key
from draftsman.jobs.runs.quota import UNLIMITED, Quota, QuotaLimit
from draftsman.jobs.runs.run import Lease, lease_lost
from draftsman.jobs.runs.saved_data import Artifact, CheckpointSummary, LogChunk, Step, StepSummary
from draftsman.jobs.runs.store import checkpoints as store
from draftsman.jobs.runs.store import run_state
from draftsman.text import (
    CHECKPOINT_LIMIT,
    REQUEST_LIMIT,
    clean,
    clean_within_limit,
    truncate_payload,
)

ARTIFACT_LIMIT = 25 * 1024 * 1024
"""Maximum size of an artifact, in bytes."""
MAX_RUN = 2**31 - 1
"""Above every run number."""


class Checkpoints:
    """Writes and reads of the data of runs."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def save(
        self,
        lease: Lease,
        data: dict[str, Any],
        bundle: bytes | None = None,
        write_with: Callable[[Connection], Awaitable[bool]] | None = None,
    ) -> None:
        """Save the handler's state and the work bundle.

        `write_with` writes in the same transaction; it returns whether the run owns its job. Raises
        LeaseLost, and UsageError over 1 MiB of JSON or a bundle over 25 MB.
        """
        data = clean_within_limit(data, CHECKPOINT_LIMIT, "a checkpoint")
        if bundle is not None:
            _check_size(BUNDLE, bundle)

        async def work(conn: Connection) -> bool:
            bundle_id = None
            if bundle is not None:
                bundle_id = await store.artifact(conn, lease, BUNDLE, "bundle", bundle)
                if bundle_id is None:
                    return False
            if write_with is not None and not await write_with(conn):
                return False
            return await store.checkpoint(conn, lease, data, bundle_id)

        await self._fenced(lease, work)

    async def latest(
        self, job: int, before_run: int | None = None
    ) -> tuple[dict[str, Any] | None, bytes | None]:
        """Return the data and the work bundle of the newest checkpoint, maybe of earlier runs."""
        async with self._db.connection() as conn:
            checkpoint = await store.last_checkpoint(conn, job, before_run)
            if checkpoint is None:
                return None, None
            data, bundle = checkpoint
            return data, None if bundle is None else await store.content(conn, bundle)

    async def begin_step(
        self,
        lease: Lease,
        key: str,
        invocation_id: str | None = None,
        owner: Owner = Owner.HANDLER,
    ) -> tuple[Step, bool]:
        """Record that an effect is about to happen; return the step, and whether it is new.

        Raises UsageError for a key of the other owner.
        """
        key = clean(key)
        check_key(key, owner, "step")
        invocation = clean(invocation_id) if invocation_id else str(new_id())

        async def work(conn: Connection) -> tuple[bool, Step | None]:
            return await store.begin_step(conn, lease, key, invocation, owner)

        owned, existing = await self._db.run_transaction(work)
        if not owned:
            raise lease_lost(lease)
        new = Step(key, "pending", invocation, None, owner)
        return (existing, False) if existing else (new, True)

    async def finish_step(
        self, lease: Lease, key: str, result: Any, owner: Owner = Owner.HANDLER
    ) -> None:
        """Record the result of the effect; at most 1 MiB of JSON."""
        key = clean(key)
        check_key(key, owner, "step")
        result = clean_within_limit(result, REQUEST_LIMIT, f"the result of step {key!r}")
        await self._fenced(lease, lambda conn: store.finish_step(conn, lease, key, result, owner))

    steps = on_connection(store.steps)

    async def progress(
        self, job: int, *, limit: int
    ) -> tuple[Sequence[StepSummary], Sequence[CheckpointSummary]]:
        """Return the newest steps of a job and its checkpoints, both newest first.

        A later run starts from the newest checkpoint, and repeats no step that is done.
        """
        async with self._db.connection() as conn:
            return (
                await store.step_summaries(conn, job, limit),
                await store.checkpoint_summaries(conn, job),
            )

    async def event(
        self,
        lease: Lease,
        kind: str,
        payload: dict[str, Any],
        *,
        unless_after: int | None = None,
    ) -> int:
        """Append an event and return its id; a payload over 10 KB is truncated and marked.

        `unless_after` makes a repeated call safe: an equal event of the run after this id is
        returned instead.
        """
        cut = truncate_payload(payload)
        name = clean(kind)[:100]
        event_id = await self._db.run_transaction(
            lambda conn: store.event(conn, lease, name, cut, unless_after)
        )
        if event_id is None:
            raise lease_lost(lease)
        return event_id

    async def artifact(
        self,
        lease: Lease,
        name: str,
        kind: str,
        data: bytes,
        counts: tuple[int, int] | None = None,
    ) -> None:
        """Store a file of at most 25 MB by name, replacing a file of the same name.

        `counts` are the lines that a patch adds and removes.
        """
        _check_size(name, data)

        async def work(conn: Connection) -> bool:
            return await store.artifact(conn, lease, clean(name), kind, data, counts) is not None

        await self._fenced(lease, work)

    async def log(
        self, lease: Lease, seq: int, text: str, limit: int = UNLIMITED, age: float = 0
    ) -> bool:
        """Append a chunk of at most 64 KB, which began `age` seconds ago, to the run's log.

        Return False, without writing it, where the logs of the job would exceed `limit` bytes.
        """
        owned, stored = await self._db.run_transaction(
            lambda conn: store.log(conn, lease, seq, clean(text), limit, age)
        )
        if not owned:
            raise lease_lost(lease)
        return stored

    async def log_parked(self, lease: Lease, text: str) -> None:
        """Append a line to the log of a run that has parked; nothing if this is not its lease."""
        await self._db.run_transaction(lambda conn: store.log_parked(conn, lease, clean(text)))

    async def spend(self, lease: Lease, quota: Quota, size: int, limit: QuotaLimit) -> bool:
        """Consume a use of so many bytes; return whether the job's quota allows it."""
        owned, allowed = await self._db.run_transaction(
            lambda conn: store.consume_quota(conn, lease, quota, size, limit)
        )
        if not owned:
            raise lease_lost(lease)
        return allowed

    async def pull_request(self, lease: Lease, url: str) -> None:
        """Record the pull request of the job's work."""
        await self._fenced(lease, lambda conn: run_state.pull_request(conn, lease, clean(url)))

    async def assign_agent(self, lease: Lease, agent: str) -> None:
        """Record the agent of a run's job that has none; raises LeaseLost."""
        await self._fenced(lease, lambda conn: run_state.assign_agent(conn, lease, agent))

    async def describe(
        self, lease: Lease, params: dict[str, Any], exit_code: int | None = None
    ) -> None:
        """Record the parameters that the run resolved, or the exit code of its program."""
        await self._fenced(
            lease, lambda conn: run_state.describe(conn, lease, clean(params), exit_code)
        )

    runs = on_connection(run_state.runs)
    ticket_url = on_connection(run_state.ticket_url)
    artifacts = on_connection(store.artifacts)

    async def read_artifact(
        self, job: int, name: str, most: int | None = None
    ) -> tuple[Artifact, bytes]:
        """Return the newest artifact of that name and its bytes, limited to `most` MiB.

        Raises NotFound, which lists the names.
        """
        async with self._db.connection() as conn:
            artifact = await store.find_artifact(conn, job, name)
            if artifact is None:
                names = ", ".join(sorted({item.name for item in await store.artifacts(conn, job)}))
                raise NotFound(
                    f"{job_name(job)} has no artifact {name!r}; artifacts: {names or 'none'}"
                )
            return artifact, await store.content(conn, artifact.id, most)

    async def content(self, artifact: Artifact, most: int | None = None) -> bytes:
        """Return an artifact's bytes, limited to `most` MiB."""
        async with self._db.connection() as conn:
            return await store.content(conn, artifact.id, most)

    logs = on_connection(store.logs)

    async def log_end(
        self,
        job: int,
        after: tuple[int, int] = (0, 0),
        before: tuple[int, int] = (MAX_RUN, 0),
        limit: int = 100,
    ) -> Sequence[LogChunk]:
        """Return the newest chunks of a job's logs between two (run, seq), oldest first."""
        async with self._db.connection() as conn:
            return (await store.log_end(conn, job, after, before, limit))[::-1]

    now = on_connection(store.now)

    async def _fenced(self, lease: Lease, work: Callable[[Connection], Awaitable[bool]]) -> None:
        if not await self._db.run_transaction(work):
            raise lease_lost(lease)


def _check_size(name: str, data: bytes) -> None:
    if len(data) > ARTIFACT_LIMIT:
        raise UsageError(f"artifact {name!r} has {len(data):,} bytes; the maximum is 25 MB")
