"""Insertion of a batch of requests, in the transaction of the caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from draftsman.database.database import Connection
from draftsman.deliveries.store import deliveries
from draftsman.deliveries.target import Target
from draftsman.jobs.requests.service import unique_work
from draftsman.jobs.requests.service.unique_work import UniqueRequest
from draftsman.jobs.requests.store import submissions as store
from draftsman.jobs.requests.submit_result import SubmitResult

MAX_KEPT_TEXT: Final = 3000
"""Maximum length of the stored text of a request that joined an active job, in characters."""


class NewRequest(NamedTuple):
    """The columns of a request, its targets, and the name of its actor."""

    values: dict[str, Any]
    targets: list[Target]
    actor: str
    unique: UniqueRequest | None
    after: Sequence[str] = ()
    """Display names of its parents."""
    attachments: Sequence[dict[str, Any]] = ()
    """The rows of its files."""
    is_operator: bool = False
    """Whether its actor may control jobs of others."""


async def insert(conn: Connection, batch: Sequence[NewRequest]) -> list[tuple[int, SubmitResult]]:
    """Insert a batch, and add an event and targets for each request that joined an active job.

    Return the results with their indexes in the batch. Each actor has a statement, in sorted order
    like the keys of a statement, so that two batches cannot deadlock.
    """
    by_actor: dict[str, list[int]] = {}
    for index, item in enumerate(batch):
        by_actor.setdefault(item.actor, []).append(index)
    keys = [item.unique.key for item in batch if item.unique]
    if keys:  # subjects are locked with them, in a common order
        keys += [item.values["subject_key"] for item in batch]
        await store.lock_subjects(conn, keys)
    results: list[tuple[int, SubmitResult]] = []
    for actor, indexes in sorted(by_actor.items()):
        inserted = await _insert_of(conn, [batch[index] for index in indexes], actor)
        joined = [
            (result.number, _request(batch[indexes[result.place]]))
            for result in inserted
            if result.outcome == "joined"
        ]
        if joined:
            await store.join(conn, joined, actor)
        results += [(indexes[result.place], result) for result in inserted]
    joined_with_targets = [
        (item.number, batch[index].targets)
        for index, item in results
        if item.outcome == "joined" and batch[index].targets
    ]
    if joined_with_targets:
        created = {item.number for _, item in results if item.outcome == "created"}
        await deliveries.add_targets(conn, joined_with_targets, created)
    for index, result in results:
        if batch[index].attachments and result.outcome in ("created", "joined"):
            await _attach(conn, result.number, batch[index])
    return results


async def _attach(conn: Connection, job: int, item: NewRequest) -> None:
    """Add the files of a request to its job."""
    from draftsman.jobs.requests.store import attachments

    await attachments.add(conn, job, item.actor, item.attachments, None)


async def _insert_of(
    conn: Connection, batch: Sequence[NewRequest], actor: str
) -> list[SubmitResult]:
    """Insert the requests of an actor together, except those that may repeat a job."""
    plain = [index for index, item in enumerate(batch) if item.unique is None]
    results = []
    if plain:
        rows, targets = [batch[i].values for i in plain], [batch[i].targets for i in plain]
        results = await store.submit(conn, rows, actor, targets)
    if len(plain) == len(batch):
        return results
    results = [result._replace(place=plain[result.place]) for result in results]
    for index, item in enumerate(batch):
        if item.unique is not None:
            stored = await unique_work.submit(conn, item.unique, item.values, item.targets, actor)
            results += [result._replace(place=index) for result in stored]
    return results


def _request(item: NewRequest) -> dict[str, Any]:
    """Return the event payload for a request that joined an active job."""
    row = item.values
    text = row["ticket_text"]
    payload = {
        "requester": row["invoker_id"],
        "name": row["invoker_display_name"],
        "source": row["source"],
        "title": row["ticket_title"],
        "text": text[:MAX_KEPT_TEXT] if text else None,
        "url": row["ticket_url"],
        "key": row["idempotency_key"],
        "digest": row["request_digest"],
        "after": list(item.after),
    }
    return {name: value for name, value in payload.items() if value}
