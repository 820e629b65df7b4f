"""The outbox: targets, deliveries and rate limits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from psycopg.types.json import Jsonb

from draftsman.database.database import (
    Connection,
    execute,
    fetch_all,
    fetch_one,
    from_record,
    rows,
    scalar,
)
from draftsman.database.named_queries import load, load_parts
from draftsman.database.selection import ALL, Selection
from draftsman.deliveries.delivery import (
    ClaimedDelivery,
    Delivery,
    DeliveryKind,
    DeliveryStatus,
    DeliveryTransition,
)
from draftsman.deliveries.message_facts import GroupStop, MessageFacts
from draftsman.deliveries.target import Target, TargetRow
from draftsman.jobs.job import TERMINAL, RequestSummary, Status
from draftsman.jobs.runs.run import LeaderTerm, Lease
from draftsman.jobs.runs.store import jobs

_Q = load(__name__)

NOTIFY_DUE: Final = load_parts(__name__)["notify_due"]
"""Query of the time when the sweep is due."""

MAX_FILES: Final = 5
"""Maximum number of artifacts sent with a result; others are requested by name."""
MAX_FILE_SIZE: Final = 10 * 1024 * 1024
"""Maximum size of such an artifact, in bytes."""
MAX_SEQ: Final = 2**63 - 1
"""Above every delivery number."""


async def add_targets(
    conn: Connection,
    targets: Sequence[tuple[int, Sequence[Target]]],
    created: Collection[int] = (),
) -> None:
    """Add targets to jobs; existing targets are unchanged.

    The jobs are locked for it, except those that this transaction `created`: no other sees them.
    """
    if existing := [job for job, _ in targets if job not in created]:
        await jobs.lock_jobs(conn, existing)
    records = [
        {"job": job, "place": ordinal, **target.as_json()}
        for job, job_targets in targets
        for ordinal, target in enumerate(job_targets)
    ]
    await execute(conn, _Q["add_targets"], {"rows": Jsonb(records)})


async def inherit_targets(conn: Connection, old: int, new: int) -> None:
    """Copy the targets of a job to another."""
    await execute(conn, _Q["inherit_targets"], {"old": old, "new": new})


async def targets(conn: Connection, job: int) -> list[TargetRow]:
    """Return the notification targets of a job."""
    return await fetch_all(conn, _Q["targets"], {"job": job}, TargetRow)


async def enqueue(
    conn: Connection,
    job: int,
    kind: DeliveryKind,
    key: str,
    payload: dict[str, Any],
    at: Target | None = None,
) -> int:
    """Insert a delivery for each target that receives this kind, or for `at`, once for each key.

    Return the number of deliveries.
    """
    params = {"job": job, "kind": kind, "key": key, "payload": Jsonb(payload)}
    address = None if at is None else f"{at.channel}:{at.target}"
    if at is not None and at.thread:
        address = f"{address}/{at.thread}"
    return await execute(conn, _Q["enqueue"], {**params, "at": address})


async def notify(
    conn: Connection, lease: Lease, key: str, payload: dict[str, Any], at: Sequence[Target]
) -> bool:
    """Insert a run's notice for these targets, or for those of its job, once for each key.

    Return False after a lost lease.
    """
    places = [{"place": ordinal, **target.as_json()} for ordinal, target in enumerate(at)]
    params = {"job": lease.job, "token": lease.token, "key": key, "payload": Jsonb(payload)}
    return await scalar(conn, _Q["notify"], params | {"places": Jsonb(places)}) is not None


async def post(
    conn: Connection,
    job: int,
    target: Target,
    key: str,
    kind: DeliveryKind,
    payload: dict[str, Any],
) -> None:
    """Insert a message in a thread of its own, once for each key."""
    params = {"job": job, "channel": target.channel, "target": target.target, "key": key}
    await execute(conn, _Q["post"], params | {"kind": kind, "payload": Jsonb(payload)})


async def of_key(conn: Connection, job: int, key: str) -> list[int]:
    """Return the deliveries of a job for a key."""
    return [row[0] for row in await rows(conn, _Q["of_key"], {"job": job, "key": key})]


def _facts(**record: Any) -> MessageFacts:
    return from_record(MessageFacts, {**record, "request": RequestSummary.of_columns(record)})


async def message_facts(conn: Connection, seq: int) -> MessageFacts:
    """Return the data of a delivery's message."""
    facts = await fetch_one(conn, _Q["message_facts"], {"seq": seq}, _facts)
    assert facts is not None, "deliveries are never deleted"  # noqa: S101
    return facts


async def group_stop(conn: Connection, seq: int) -> GroupStop | None:
    """Return how the group of a delivery's job stopped; None for another job or end."""
    return await fetch_one(conn, _Q["group_stop"], {"seq": seq}, GroupStop)


async def finish(
    conn: Connection, item: ClaimedDelivery, transition: DeliveryTransition, fallback: Target | None
) -> tuple[DeliveryStatus, int | None] | None:
    """Record the result of an attempt; None after a lost lease.

    Return the new status, and the delivery that replaces a dead letter.
    """
    params = {
        "seq": item.seq,
        "token": item.lease_token,
        "status": transition.status,
        "doubt": transition.doubt,
        "spent": transition.spent,
        "delay": transition.delay,
        "due": transition.due,
        "ref": transition.ref,
        "error": transition.error,
        "fallback_channel": fallback.channel if fallback else None,
        "fallback_target": fallback.target if fallback else None,
    }
    records = await rows(conn, _Q["finish"], params)
    return (records[0][0], records[0][1]) if records else None


async def attach(conn: Connection, seq: int, files: Sequence[dict[str, Any]]) -> None:
    """Insert file deliveries for a sent message: `files`, and the artifacts of a result."""
    params = {"seq": seq, "files": Jsonb(list(files)), "most": MAX_FILES, "size": MAX_FILE_SIZE}
    await execute(conn, _Q["attach"], params)


async def warn(conn: Connection, seq: int, text: str) -> None:
    """Insert a notice for the target and thread of a delivery, once."""
    await execute(conn, _Q["warn"], {"seq": seq, "payload": Jsonb({"text": text})})


async def copy_to(conn: Connection, seq: int, targets: Sequence[str]) -> None:
    """Insert a copy of this question or reminder for each of these targets, once."""
    await execute(conn, _Q["copy_to"], {"seq": seq, "targets": list(targets)})


async def page(
    conn: Connection, statuses: Sequence[DeliveryStatus], limit: int, before: int | None = None
) -> list[Delivery]:
    """Return the newest deliveries with these statuses, before a seq."""
    last = MAX_SEQ if before is None else before
    params = {"statuses": [str(status) for status in statuses], "before": last, "limit": limit}
    return await fetch_all(conn, _Q["page"], params, Delivery)


async def of_job(
    conn: Connection, job: int, statuses: Sequence[DeliveryStatus] | None, limit: int
) -> list[Delivery]:
    """Return the newest deliveries of a job."""
    names = None if statuses is None else [str(status) for status in statuses]
    params = {"job": job, "statuses": names, "limit": limit}
    return await fetch_all(conn, _Q["of_job"], params, Delivery)


async def dead_letters(conn: Connection, seqs: Sequence[int]) -> list[tuple[int, int]]:
    """Return (delivery, job) of the dead letters among these deliveries."""
    return [(seq, job) for seq, job in await rows(conn, _Q["dead_letters"], {"seqs": list(seqs)})]


async def dead_letters_of_job(conn: Connection, job: int, limit: int) -> list[tuple[int, int]]:
    """Return (delivery, job) of the dead letters of a job."""
    records = await rows(conn, _Q["dead_letters_of_job"], {"job": job, "limit": limit})
    return [(seq, number) for seq, number in records]


async def all_dead(conn: Connection, limit: int) -> list[tuple[int, int]]:
    """Return (delivery, job) of the oldest dead letters."""
    return [(seq, job) for seq, job in await rows(conn, _Q["all_dead"], {"limit": limit})]


async def redeliver(conn: Connection, seqs: Sequence[int], actor: str) -> list[int]:
    """Make dead letters, whose jobs are locked, due again; return them."""
    params = {"seqs": list(seqs), "actor": actor}
    return [row[0] for row in await rows(conn, _Q["redeliver"], params)]


async def statuses_of(conn: Connection, seqs: Sequence[int]) -> dict[int, DeliveryStatus]:
    """Return the status of each of these deliveries that exists."""
    records = await rows(conn, _Q["statuses_of"], {"seqs": list(seqs)})
    return {row[0]: row[1] for row in records}


async def dead_letter_count(conn: Connection, most: int) -> int:
    """Return how many of the newest `most` dead letters have no replacement."""
    return int(await scalar(conn, _Q["dead_letter_count"], {"most": most}))


async def unnotified(conn: Connection, most: int) -> list[tuple[str, bool, int]]:
    """Return (invoker, opted out, count) of unfinished jobs without targets.

    Only the newest `most` jobs of each status are counted.
    """
    statuses = [str(status) for status in Status if status not in TERMINAL]
    params = {"statuses": statuses, "most": most}
    records = await rows(conn, _Q["unnotified"], params)
    return [(invoker, opted_out, count) for invoker, opted_out, count in records]


# Dead letters without a notification target.


async def notify_dead_letters(
    conn: Connection,
    term: LeaderTerm,
    limit: int,
    target: Target | None,
    selection: Selection = ALL,
) -> list[tuple[int, str]]:
    """Insert deliveries of dead letters without a target; return each with its invoker."""
    params: dict[str, Any] = dict.fromkeys(("channel", "target", "thread"))
    if target is not None:
        params = {"channel": target.channel, "target": target.target, "thread": target.thread}
    letters = await rows(
        conn, _Q["notify_dead_letters"], term.params(limit) | selection.params | params
    )
    return [(number, invoker) for number, invoker in letters]


async def notify_dead_letters_candidates(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection
) -> list[int]:
    """Return the jobs that `notify` would notify of."""
    params = term.params(limit) | selection.params
    return [job for (job,) in await rows(conn, _Q["notify_dead_letters_candidates"], params)]
