"""Threads that show runs while they work: claims, records, and rate limits of the calls.

Status and stream of a thread are no deliveries: they may be late, and are omitted where the chat
refuses them. A thread is claimed by a single process at a time. When that process dies, another
process claims the thread after the lease and continues from its row.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from draftsman.agent_runs.activity.live_thread import LiveProgress, LiveThread, StreamState
from draftsman.channels import ChannelName
from draftsman.database.database import Database, on_connection
from draftsman.deliveries.service.rate_limits import RateLimits
from draftsman.deliveries.service.recipients import requester
from draftsman.deliveries.store import live_threads as store
from draftsman.log import redact
from draftsman.people.policy import Policy
from draftsman.people.service.linked_policy import with_identity_links


class LiveThreads:
    """The threads of a channel that show runs."""

    def __init__(self, db: Database, policy: Policy, channel: ChannelName) -> None:
        self._db = db
        self._policy = policy
        self._channel = channel
        self.limits = RateLimits(db)

    async def claim(self, limit: int, lease: float) -> list[tuple[LiveThread, LiveProgress]]:
        """Claim due threads for `lease` seconds; return each with the progress of its run.

        The progress of a run that ended is read for its open stream, which shows it last.
        """
        async with self._db.connection() as conn:
            await store.add(conn, self._channel)
            threads = await store.claim(conn, limit, lease, uuid4())
            shown = [it for it in threads if it.is_running or it.stream is StreamState.OPEN]
            runs = sorted({(thread.job, thread.run) for thread in shown})
            progress = {job: LiveProgress() for job, _ in runs}
            for job, row in await store.progress(conn, runs) if runs else ():
                progress[job].add(row)
            for job, key, done in await store.steps(conn, list(progress)) if runs else ():
                progress[job].add_step(redact(key), done=done)
        return [
            (replace(thread, title=redact(thread.title)), progress.get(thread.job, LiveProgress()))
            for thread in threads
        ]

    begin_stream = on_connection(store.begin_stream)

    async def record(self, thread: LiveThread, due: float) -> bool:
        """Record the state of a thread and end the claim; False where it is lost."""
        async with self._db.connection() as conn:
            return await store.record(conn, thread, due, release=True)

    async def park(self, thread: LiveThread, due: float) -> bool:
        """Record it, to be claimed when its job changes, or in `due` seconds."""
        async with self._db.connection() as conn:
            return await store.record(conn, thread, due, release=True, parked=True)

    async def keep(self, thread: LiveThread, lease: float) -> bool:
        """Record the state of a thread and extend the claim; False where it is lost."""
        async with self._db.connection() as conn:
            return await store.record(conn, thread, lease, release=False)

    remove = on_connection(store.remove)
    known_streams = on_connection(store.known_streams)

    async def reader(self, thread: LiveThread) -> str | None:
        """Return the account of the job's requester, for whom a stream is."""
        async with self._db.connection() as conn:
            policy = await with_identity_links(conn, self._policy, self._channel)
        return requester(policy, thread.invoker_id, self._channel)
