"""Rows of the outbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from draftsman.domain.job import TERMINAL, Status
from draftsman.domain.messages.delivery import (
    ChannelName,
    ClaimedDelivery,
    Delivery,
    DeliveryKind,
    DeliveryStatus,
    DeliveryTransition,
    RateLimit,
)
from draftsman.domain.messages.target import Target
from draftsman.domain.run import Lease
from draftsman.store.postgres.database import (
    Connection,
    execute,
    fetch_all,
    fetch_one,
    rows,
    scalar,
)
from draftsman.store.queries import load

MAX_FILES: Final = 5
"""Artifacts that follow a result by themselves; the others are asked for by name."""
MAX_FILE_SIZE: Final = 10 * 1024 * 1024
"""Bytes of such an artifact at most."""
MAX_SEQ: Final = 2**63 - 1
"""A number that no delivery reaches."""
_Q = load("deliveries")


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """What a message can say: of its job, of the copy that it is about, and of the first one."""

    number: int
    job_id: UUID
    type: str
    status: str
    mode: str
    agent: str | None
    repo_owner: str | None
    repo_name: str | None
    ticket_title: str | None
    ticket_url: str | None
    invoker_id: str
    invoker_display_name: str | None
    next_retry_at: datetime | None
    last_error: str | None
    error_class: str | None
    cancel_requested_by: str | None
    cancel_reason: str | None
    result: dict[str, Any] | None
    created_at: datetime
    finished_at: datetime | None
    copy_id: UUID | None
    copy_status: DeliveryStatus | None
    copy_in_doubt: bool | None
    copy_kind: DeliveryKind | None
    copy_ref: str | None
    copy_created_at: datetime | None
    root: str | None
    moved: str | None
    """Where what the job says to this target goes since the target was gone."""


@dataclass(frozen=True, slots=True)
class TargetRow:
    """One row of `job_targets`."""

    job: int
    ordinal: int
    channel: ChannelName
    target: str
    thread: str | None
    kinds: list[str]
    outcomes: list[str] | None
    created_at: datetime


async def add_targets(conn: Connection, targets: Sequence[tuple[int, Sequence[Target]]]) -> None:
    """Add targets to jobs, which are locked for it; those that are there stay as they are."""
    await execute(conn, _Q["lock_jobs"], {"jobs": [job for job, _ in targets]})
    given = [
        {"job": job, "place": place, **target.as_json()}
        for job, wanted in targets
        for place, target in enumerate(wanted)
    ]
    await execute(conn, _Q["add_targets"], {"rows": Jsonb(given)})


async def lock_jobs(conn: Connection, jobs: Sequence[int]) -> list[int]:
    """Lock jobs in their order; return those that there are."""
    return [row[0] for row in await rows(conn, _Q["lock_jobs"], {"jobs": list(jobs)})]


async def inherit_targets(conn: Connection, old: int, new: int) -> None:
    """Give a new job the targets of another."""
    await execute(conn, _Q["inherit_targets"], {"old": old, "new": new})


async def targets(conn: Connection, job: int) -> list[TargetRow]:
    """Return the targets of a job."""
    return await fetch_all(conn, _Q["targets"], {"job": job}, TargetRow)


async def enqueue(
    conn: Connection,
    job: int,
    kind: DeliveryKind,
    key: str,
    payload: dict[str, Any],
    at: Target | None = None,
) -> int:
    """Write a message to every target that wants its kind, or to one; return how many.

    Once for a key.
    """
    params = {"job": job, "kind": kind, "key": key, "payload": Jsonb(payload)}
    place = None if at is None else f"{at.channel}:{at.target}"
    if at is not None and at.thread:
        place = f"{place}/{at.thread}"
    return await execute(conn, _Q["enqueue"], {**params, "at": place})


async def notify(
    conn: Connection, lease: Lease, key: str, payload: dict[str, Any], at: Sequence[Target]
) -> bool:
    """Write a run's message to these targets, or to those of its job that want notices.

    Once for a key; False when the run had lost its job.
    """
    places = [{"place": place, **target.as_json()} for place, target in enumerate(at)]
    params = {"job": lease.job, "token": lease.token, "key": key, "payload": Jsonb(payload)}
    return await scalar(conn, _Q["notify"], params | {"places": Jsonb(places)}) is not None


async def of_key(conn: Connection, job: int, key: str) -> list[int]:
    """Return the deliveries of a job that were written for a key."""
    return [row[0] for row in await rows(conn, _Q["of_key"], {"job": job, "key": key})]


async def message_facts(conn: Connection, seq: int) -> MessageFacts:
    """Return what a delivery's message can say."""
    found = await fetch_one(conn, _Q["message_facts"], {"seq": seq}, MessageFacts)
    assert found is not None, "deliveries are never deleted"  # noqa: S101
    return found


async def lock(conn: Connection, job: int) -> bool:
    """Lock a job; False when there is none."""
    return await scalar(conn, _Q["lock"], {"job": job}) is not None


async def finish(
    conn: Connection, item: ClaimedDelivery, end: DeliveryTransition, fallback: Target | None
) -> tuple[DeliveryStatus, int | None] | None:
    """Write how a try ended; None when the lease was lost.

    Return the new status, and which delivery stands in for one that died.
    """
    params = {
        "seq": item.seq,
        "token": item.lease_token,
        "status": end.status,
        "doubt": end.doubt,
        "spent": end.spent,
        "delay": end.delay,
        "due": end.due,
        "ref": end.ref,
        "error": end.error,
        "fallback_channel": fallback.channel if fallback else None,
        "fallback_target": fallback.target if fallback else None,
    }
    found = await rows(conn, _Q["finish"], params)
    return (found[0][0], found[0][1]) if found else None


async def attach(conn: Connection, seq: int, files: Sequence[dict[str, Any]]) -> None:
    """Write the files of what was sent to its thread: these, and of a result its artifacts."""
    params = {"seq": seq, "files": Jsonb(list(files)), "most": MAX_FILES, "size": MAX_FILE_SIZE}
    await execute(conn, _Q["attach"], params)


async def copy_to(conn: Connection, seq: int, targets: Sequence[str]) -> None:
    """Write a copy of this question, or reminder, for each of these targets, once."""
    await execute(conn, _Q["copy_to"], {"seq": seq, "targets": list(targets)})


async def make_buckets(conn: Connection, limits: Sequence[RateLimit]) -> None:
    """Make the rows of these buckets where there are none."""
    await execute(conn, _Q["make_buckets"], {"buckets": [limit.bucket for limit in limits]})


async def consume_tokens(conn: Connection, limits: Sequence[RateLimit]) -> float | None:
    """Take one from each of these buckets; else return the seconds until it may be possible."""
    params = {
        "buckets": [limit.bucket for limit in limits],
        "every": [limit.every for limit in limits],
        "bursts": [limit.burst for limit in limits],
    }
    found = await scalar(conn, _Q["consume_tokens"], params)
    return None if found is None else float(found)


async def pause(conn: Connection, bucket: str, seconds: float, reason: str) -> None:
    """Close a bucket to everybody for so many seconds."""
    params = {"bucket": bucket, "seconds": seconds, "reason": reason}
    await execute(conn, _Q["pause"], params)


async def resume(conn: Connection, channel: ChannelName) -> None:
    """End the pause of a channel, and what its deliveries wait for because of it."""
    await execute(conn, _Q["resume"], {"channel": channel, "bucket": str(channel)})


async def page(
    conn: Connection, statuses: Sequence[DeliveryStatus], limit: int, before: int | None = None
) -> list[Delivery]:
    """Return the newest deliveries of some statuses, before a seq."""
    last = MAX_SEQ if before is None else before
    params = {"statuses": [str(one) for one in statuses], "before": last, "limit": limit}
    return await fetch_all(conn, _Q["page"], params, Delivery)


async def of_job(
    conn: Connection, job: int, statuses: Sequence[DeliveryStatus] | None, limit: int
) -> list[Delivery]:
    """Return the newest deliveries of a job."""
    wanted = None if statuses is None else [str(one) for one in statuses]
    params = {"job": job, "statuses": wanted, "limit": limit}
    return await fetch_all(conn, _Q["of_job"], params, Delivery)


async def dead(conn: Connection, seqs: Sequence[int]) -> list[tuple[int, int]]:
    """Return (delivery, job) of those among these that are dead."""
    return [(one, job) for one, job in await rows(conn, _Q["dead"], {"seqs": list(seqs)})]


async def dead_of_job(conn: Connection, job: int, limit: int) -> list[tuple[int, int]]:
    """Return (delivery, job) of a job's dead ones."""
    found = await rows(conn, _Q["dead_of_job"], {"job": job, "limit": limit})
    return [(one, number) for one, number in found]


async def all_dead(conn: Connection, limit: int) -> list[tuple[int, int]]:
    """Return (delivery, job) of the oldest dead ones."""
    return [(one, job) for one, job in await rows(conn, _Q["all_dead"], {"limit": limit})]


async def redeliver(conn: Connection, seqs: Sequence[int], actor: str) -> list[int]:
    """Let dead ones, whose jobs are locked, be tried anew; return which."""
    params = {"seqs": list(seqs), "actor": actor}
    return [row[0] for row in await rows(conn, _Q["redeliver"], params)]


async def statuses_of(conn: Connection, seqs: Sequence[int]) -> dict[int, DeliveryStatus]:
    """Return the status of each of these that there is."""
    found = await rows(conn, _Q["statuses_of"], {"seqs": list(seqs)})
    return {row[0]: row[1] for row in found}


async def dead_count(conn: Connection, most: int) -> int:
    """Return how many of the newest `most` dead ones nothing else said instead."""
    return int(await scalar(conn, _Q["dead_count"], {"most": most}))


async def unnotified(conn: Connection, most: int) -> list[tuple[str, bool, int]]:
    """Return (invoker, whether they want none, count) of unfinished jobs without targets.

    Of each status the newest `most` are looked at.
    """
    statuses = [str(status) for status in Status if status not in TERMINAL]
    params = {"statuses": statuses, "most": most}
    found = await rows(conn, _Q["unnotified"], params)
    return [(invoker, wanted, count) for invoker, wanted, count in found]
