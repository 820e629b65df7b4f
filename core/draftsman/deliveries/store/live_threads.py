"""Threads that show runs while they work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import UUID

from psycopg.types.json import Jsonb

from draftsman.agent_runs.activity.activity import ActivityRow
from draftsman.agent_runs.activity.live_thread import LiveThread, StreamState
from draftsman.database.database import Connection, execute, fetch_all, rows, scalar
from draftsman.database.named_queries import load

MAX_RUNNING: Final = 500
"""Maximum number of running jobs whose threads are shown."""
MAX_STEPS: Final = 30
"""Maximum number of steps of a job that are read."""
_Q = load(__name__)


async def add(conn: Connection, channel: str) -> int:
    """Add the threads of running jobs in a channel; return their number."""
    return await execute(conn, _Q["add"], {"channel": channel, "limit": MAX_RUNNING})


async def claim(conn: Connection, limit: int, lease: float, token: UUID) -> list[LiveThread]:
    """Claim due threads for `lease` seconds."""
    params = {"limit": limit, "lease": lease, "token": token}
    claimed = await fetch_all(conn, _Q["claim"], params, LiveThread)
    return [replace(thread, stream=StreamState(thread.stream)) for thread in claimed]


async def progress(
    conn: Connection, runs: Sequence[tuple[int, int]]
) -> list[tuple[int, ActivityRow]]:
    """Return the newest plan and line of these (job, run), with the job."""
    params = {"jobs": [job for job, _ in runs], "runs": [run for _, run in runs]}
    records = await rows(conn, _Q["progress"], params)
    return [(job, ActivityRow(*fields)) for job, *fields in records]


async def steps(conn: Connection, jobs: Sequence[int]) -> list[tuple[int, str, bool]]:
    """Return the newest steps of handlers: job, key, and whether the step is done."""
    params = {"jobs": list(jobs), "limit": MAX_STEPS}
    records = await rows(conn, _Q["steps"], params)
    return [(job, key, status == "done") for job, key, status, _ in records]


async def begin_stream(conn: Connection, thread: LiveThread) -> datetime | None:
    """Record that a stream is being started, and when.

    None: the claim is lost, or this run had a stream.
    """
    params = {"key": thread.thread_key, "token": thread.token}
    return await scalar(conn, _Q["begin_stream"], params)  # type: ignore[no-any-return]


async def record(
    conn: Connection, thread: LiveThread, due: float, *, release: bool, parked: bool = False
) -> bool:
    """Record the state of a thread, to be claimed in `due` seconds; False without the claim.

    `parked`: it is also due as soon as its job changes.
    """
    params = {
        "key": thread.thread_key,
        "token": thread.token,
        "run": thread.run,
        "stream": thread.stream,
        "ref": thread.stream_ref,
        "started_at": thread.started_at,
        "shown": Jsonb(thread.shown),
        "text": thread.status_text,
        "status_at": thread.status_at,
        "quiet": thread.quiet,
        "session": thread.session,
        "version": thread.job_version if parked else None,
        "added_at": thread.added_at,
        "due": due,
        "release": release,
    }
    return await scalar(conn, _Q["record"], params) is not None


async def remove(conn: Connection, thread: LiveThread) -> bool:
    """Remove a thread that shows nothing; False where the claim is lost."""
    params = {"key": thread.thread_key, "token": thread.token}
    return await execute(conn, _Q["remove"], params) > 0


async def known_streams(conn: Connection, refs: Sequence[str]) -> set[str]:
    """Return those references that are streams of threads."""
    return {ref for (ref,) in await rows(conn, _Q["known_streams"], {"refs": list(refs)})}
