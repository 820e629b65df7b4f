"""Messages of people, as the run of a job gives them to its agent."""

from __future__ import annotations

from collections.abc import Sequence

from draftsman.database.database import Connection, Database
from draftsman.jobs.control.job_message import JobMessage
from draftsman.jobs.control.store import messages as store
from draftsman.jobs.runs.run import Lease, lease_lost


class RunMessages:
    """Reads and writes of a run about the messages of its job; writes prove the lease."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def undelivered(self, job: int) -> list[JobMessage]:
        """Return the messages that no run has delivered, oldest first."""
        async with self._db.connection() as conn:
            return [item for item in await store.of_job(conn, job) if item.delivered_at is None]

    async def hand(self, lease: Lease, ordinals: Sequence[int]) -> None:
        """Record that the agent is given these messages."""
        if not await self._db.run_transaction(lambda conn: store.hand(conn, lease, ordinals)):
            raise lease_lost(lease)

    async def deliver(self, lease: Lease, ordinals: Sequence[int]) -> None:
        """Record that these messages are delivered."""
        if not await self._db.run_transaction(lambda conn: store.deliver(conn, lease, ordinals)):
            raise lease_lost(lease)

    async def deliver_in(self, conn: Connection, lease: Lease, ordinals: Sequence[int]) -> bool:
        """Record it in the transaction of the caller; return whether the run owns its job."""
        return await store.deliver(conn, lease, ordinals)
