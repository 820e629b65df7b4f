"""Attachments of requests and messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from psycopg.types.json import Jsonb

from draftsman.channels import ChannelName
from draftsman.database.database import Connection, fetch_all, scalar
from draftsman.database.named_queries import load
from draftsman.jobs.requests.attachments import JobAttachment, PendingFile

_Q = load(__name__)


async def add(
    conn: Connection, job: int, actor: str, files: Sequence[dict[str, Any]], message: int | None
) -> int:
    """Add files to an unfinished job, with a message or its request; return how many are new."""
    params = {"job": job, "actor": actor, "message": message, "files": Jsonb(list(files))}
    return int(await scalar(conn, _Q["add"], params))


async def inherit(conn: Connection, old: int, new: int) -> int:
    """Give a retry or a follow-up the attachments of its job; return their number."""
    return int(await scalar(conn, _Q["inherit"], {"old": old, "new": new}))


async def of_job(conn: Connection, job: int, patience: float) -> list[JobAttachment]:
    """Return the attachments of a job; one whose download takes longer is overdue."""
    return await fetch_all(conn, _Q["of_job"], {"job": job, "patience": patience}, JobAttachment)


async def content(conn: Connection, job: int, attachment: int) -> bytes | None:
    """Return the bytes of a stored attachment of a job."""
    params = {"job": job, "attachment": attachment}
    return cast("bytes | None", await scalar(conn, _Q["content"], params))


async def claim(
    conn: Connection, channel: ChannelName, most: int, seconds: float
) -> list[PendingFile]:
    """Claim pending files of a channel for their download."""
    params = {"channel": channel, "most": most, "seconds": seconds}
    return await fetch_all(conn, _Q["claim"], params, PendingFile)


async def end(
    conn: Connection,
    file: PendingFile,
    data: bytes | None,
    reason: str | None,
    more: Sequence[dict[str, Any]] = (),
) -> str | None:
    """Store or refuse a claimed file; return its status, None if the claim is over.

    A stored file adds the files `more` to its jobs.
    """
    params: dict[str, Any] = {"id": file.id, "attempt": file.attempt, "data": data}
    params |= {"reason": reason, "more": Jsonb(list(more))}
    return cast("str | None", await scalar(conn, _Q["end"], params))
