"""Insertion of jobs that follow up on pull requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from draftsman.database.database import Connection
from draftsman.deliveries.store import deliveries
from draftsman.forges.follow_up import FollowUpEvent, title_of
from draftsman.forges.store import follow_ups
from draftsman.ids import new_id, unknown_job
from draftsman.jobs.control.service.control import INHERITED, insert_row
from draftsman.jobs.control.store import control as store
from draftsman.jobs.job import Source
from draftsman.jobs.requests.store import attachments
from draftsman.people.actor import SYSTEM


async def insert_follow_up(
    conn: Connection, root: int, parent: int, ordinal: int, events: Sequence[FollowUpEvent]
) -> int:
    """Insert the job that follows up on the pull request of `root`; return its number.

    Its title is about the events. It has the request, the targets and the newest checkpoint of its
    parent, and the requester of the first job. The caller has locked the pull request.
    """
    request = await store.request_columns(conn, parent)
    first = await store.request_columns(conn, root)
    if request is None or first is None:
        raise unknown_job(parent)
    old, _ = request
    row: dict[str, Any] = {key: old[key] for key in INHERITED} | {
        "id": new_id(),
        "idempotency_key": f"follow-up:{root}:{ordinal}",
        "source": Source.FORGE,
        "external_event_id": None,
        "invoker_id": old["invoker_id"],
        "invoker_display_name": old["invoker_display_name"],
        "subject_key": None,
        "retry_of": None,
        "chain_length": 0,
        "has_targets": old["has_targets"],
        "ticket_title": title_of(events, first[0]["ticket_title"], root),
        "hold": None,
    }
    submitted = await insert_row(conn, row, SYSTEM)
    number = submitted.number
    if submitted.outcome == "created":
        await follow_ups.add(conn, number, root, ordinal, parent)
        await store.copy_checkpoint(conn, parent, number)
        await attachments.inherit(conn, parent, number)
        if old["has_targets"]:
            await deliveries.inherit_targets(conn, parent, number)
    return number
