"""Activity of agents: batches of a run, its transcript, and reads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from draftsman.agent_runs.activity import store
from draftsman.agent_runs.activity.activity import Activity, ActivityRow
from draftsman.database.database import Connection, Database, on_connection
from draftsman.jobs.runs.quota import QuotaLimit
from draftsman.jobs.runs.run import Lease, lease_lost
from draftsman.text import clean


class ActivityStream:
    """The activity of jobs; writes raise LeaseLost as those of `Checkpoints`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def append(
        self,
        lease: Lease,
        first: int,
        rows: Sequence[Activity],
        limit: QuotaLimit,
        age: float = 0,
    ) -> datetime:
        """Store a batch from this position of the run on, and delete the oldest rows of the job.

        Return the time of the batch, which began `age` seconds ago.
        """
        cleaned = [_clean(row) for row in rows]

        async def work(conn: Connection) -> datetime | None:
            at = await store.append(conn, lease, first, cleaned, age)
            if at is not None:
                await store.evict(conn, lease.job, limit.count, limit.bytes)
            return at

        at = await self._db.run_transaction(work)
        if at is None:
            raise lease_lost(lease)
        return at

    async def append_transcript(
        self, lease: Lease, seq: int, data: bytes, *, size: int, sha256: str, most: int
    ) -> bool:
        """Append a part to the transcript of the run, which then has this size and SHA-256.

        Return False, without writing it, where the transcripts of the job would exceed `most`.
        """
        owned, stored = await self._db.run_transaction(
            lambda conn: store.transcript(
                conn, lease, seq, data, size=size, sha256=sha256, most=most
            )
        )
        if not owned:
            raise lease_lost(lease)
        return stored

    async def show(self, lease: Lease, plan: str, line: str) -> int:
        """Show plan and newest line in the status messages of the job in chat.

        Return the number of these messages.
        """
        payload = {"progress": {"plan": clean(plan), "line": clean(line)}}
        chats = await self._db.run_transaction(lambda conn: store.show(conn, lease, payload))
        if chats is None:
            raise lease_lost(lease)
        return chats

    page = on_connection(store.page)

    async def newest(
        self, job: int, after: tuple[int, int] = (0, 0), limit: int = 500
    ) -> Sequence[ActivityRow]:
        """Return the newest rows of a job after (run, seq), oldest first."""
        async with self._db.connection() as conn:
            return (await store.newest(conn, job, after, limit))[::-1]


def _clean(item: Activity) -> Activity:
    return Activity(
        kind=item.kind,
        text=clean(item.text),
        state=item.state,
        key=None if item.key is None else clean(item.key),
        detail=clean(dict(item.detail)),
        continues=item.continues,
    )
