"""Rows of what is said in threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from psycopg.types.json import Jsonb

from draftsman.store.db import Connection, fetch_all, rows, scalar
from draftsman.store.queries import load

_Q = load("threads")
MOST: Final = 20
"""Jobs of one thread that are looked at."""
WAITING: Final = 100
"""Open questions among which those of a channel are looked for."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A job that a thread is about; `question` where the thread hangs under a question of it."""

    job: int
    question: int | None


@dataclass(frozen=True, slots=True)
class Posted:
    """The message of an open question.

    `ref` is its reference in a Receipt, `thread` the thread of its target, and `root` the reference
    of the job's status message, below which it stands where the target names no thread.
    """

    job: int
    question: int
    ref: str
    thread: str | None
    root: str | None


@dataclass(frozen=True, slots=True)
class Copy:
    """A job that a card hears of, and a question of it that is asked there.

    `ref` is that of the question's comment, None where it is not known whether there is one.
    """

    job: int
    question: int | None
    ref: str | None


async def slack(conn: Connection, channel: str, thread: str) -> list[Topic]:
    """Return what a Slack thread is about, the newest first."""
    params = {"target": channel, "thread": thread, "ref": f"{channel}/{thread}", "limit": MOST}
    return await fetch_all(conn, _Q["slack"], params, Topic)


async def on_its_way(conn: Connection, targets: Sequence[str], thread: str) -> bool:
    """Return whether a thread may hang under a message whose place is not written down yet."""
    params = {"targets": list(targets), "thread": thread}
    return bool(await scalar(conn, _Q["on_its_way"], params))


async def trello(conn: Connection, card: str) -> list[Copy]:
    """Return the jobs that a card hears of, with the questions asked there, the newest first."""
    return await fetch_all(conn, _Q["trello"], {"card": card, "limit": MOST}, Copy)


async def trello_own(conn: Connection, ref: str) -> bool:
    """Return whether a comment is one of ours."""
    return bool(await scalar(conn, _Q["trello_own"], {"ref": ref}))


async def asked_in(conn: Connection, channel: str, seconds: float) -> list[tuple[int, int]]:
    """Return job and ordinal of what the newest jobs asked in a Slack channel, and is open."""
    params = {"target": channel, "seconds": seconds, "limit": WAITING}
    return [(row[0], row[1]) for row in await rows(conn, _Q["asked_in"], params)]


async def waiting(conn: Connection) -> list[Posted]:
    """Return the messages in Slack of what the newest jobs wait for."""
    return await fetch_all(conn, _Q["waiting"], {"limit": WAITING}, Posted)


async def remark(
    conn: Connection,
    job: int,
    question: int,
    event: str,
    kind: str,
    actor: str,
    detail: dict[str, Any],
) -> bool:
    """Note what became of an accepted answer; False where there is none, or it was noted."""
    params = {"job": job, "question": question, "event": event, "kind": kind, "actor": actor}
    return await scalar(conn, _Q["remark"], params | {"detail": Jsonb(detail)}) is not None
