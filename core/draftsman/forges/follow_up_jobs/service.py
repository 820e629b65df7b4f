"""The leader's part in follow-ups: new events of pull requests become work, each once."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from draftsman.database.database import Connection, Database
from draftsman.database.isolation import Isolation, run_all
from draftsman.deliveries.delivery import DeliveryKind
from draftsman.deliveries.store import deliveries
from draftsman.errors import NotPermitted
from draftsman.forges import store
from draftsman.forges.follow_up import (
    MENTION,
    FamilyJob,
    FollowUpEvent,
    FollowUpPlan,
    TrackedPull,
    message_text,
    needs_right,
    plan,
    title_of,
)
from draftsman.forges.forge_event import EventKind
from draftsman.forges.issue_target import CHANNEL
from draftsman.ids import job_name, new_id, unknown_job
from draftsman.jobs.control import store as control
from draftsman.jobs.control.service.control import INHERITED, insert_row
from draftsman.jobs.job import TERMINAL
from draftsman.jobs.requests.store import attachments
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.store import jobs as job_store
from draftsman.jobs.runs.sweep import Sweep
from draftsman.people.actor import SYSTEM, Actor
from draftsman.people.policy import Policy, Verb
from draftsman.settings.forges import ForgeSettings

LIMIT: Final = 100
"""Pull requests in one sweep."""
INTERVAL: Final = 5.0
"""Maximum seconds between two looks at new events."""
BY: Final = "system"
_log = logging.getLogger(__name__)


class FollowUpSweep:
    """Turns new events of pull requests into messages and follow-ups, or ignores them."""

    def __init__(self, db: Database, policy: Policy, forges: Mapping[str, ForgeSettings]) -> None:
        self._db = db
        self._policy = policy
        self._forges = forges
        self._isolation = Isolation(db, "follow_ups")

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweep of follow-ups."""
        return [
            Sweep(
                name="follow_ups",
                description="follows up on pull requests",
                run=self.sweep,
                isolations=(self._isolation,),
                max_interval=INTERVAL,
            )
        ]

    async def sweep(self, term: LeaderTerm) -> int:
        """Process the new events of each pull request in a transaction; return their number."""
        if not self._forges:
            return 0
        return await run_all(
            self._reopen_events,
            lambda: self._db.run_transaction(lambda conn: store.ignore_others(conn, LIMIT)),
            lambda: self._process_due(term),
        )

    async def _reopen_events(self) -> None:
        await self._db.run_transaction(lambda conn: store.reopen(conn, LIMIT))

    async def _process_due(self, term: LeaderTerm) -> int:
        async with self._db.connection() as conn:
            roots = await store.due_follow_ups(conn, term, LIMIT, self._isolation.aside)
        return await self._isolation.each(zip(roots, roots, strict=True), self._process)

    async def _process(self, root: int) -> int:
        async def work(conn: Connection) -> int:
            pull = await store.lock_pull(conn, root)
            if pull is None:
                return 0
            events = await store.new_events(conn, pull)
            jobs = await store.members(conn, root)
            again = [event for event in events if event.kind == EventKind.REOPENED]
            for event in again:
                pull = await self._reopen(conn, pull, jobs, event)
            events = [event for event in events if event not in again]
            refused = self._refused(events, jobs[0].invoker_id)
            table = self._forges.get(pull.forge)
            delay = 0.0 if table is None else table.follow_up_delay
            planned = plan(
                pull, jobs, events, refused=refused, delay=delay, mention=self._mention(pull.forge)
            )
            return len(again) + await self._apply(conn, pull, jobs, planned)

        return await self._db.run_transaction(work)

    def _refused(self, events: Sequence[FollowUpEvent], invoker: str) -> dict[int, str]:
        """Return the events of people without the right to start work, with the reason."""
        refused = {}
        for event in events:
            if not needs_right(event) or event.is_bot:
                continue
            try:
                self._policy.check(self._actor(event), Verb.TELL, invoker=invoker)
            except NotPermitted as error:
                refused[event.id] = str(error)
        return refused

    def _actor(self, event: FollowUpEvent) -> Actor:
        """Return the author of an event as an actor, with person and roles."""
        id = event.author if event.is_message else f"{event.forge}:{event.author}"
        return self._policy.resolve(Actor(event.source, id, event.author_name))

    def _mention(self, forge: str) -> str:
        """Return the login that comments on a forge mention."""
        table = self._forges.get(forge)
        return MENTION if table is None else table.mention

    async def _apply(
        self,
        conn: Connection,
        pull: TrackedPull,
        jobs: Sequence[FamilyJob],
        planned: FollowUpPlan,
    ) -> int:
        newest = jobs[-1].job
        for event, reason in planned.ignored:
            await store.ignore(conn, [event.id], reason)
            await _write(conn, newest, "forge_event_ignored", event, reason=reason)
        if planned.end is not None:
            await self._end(conn, pull, jobs, *planned.end)
        if planned.send:
            await self._send(conn, pull, jobs, planned)
        return len(planned.ignored) + len(planned.send) + (planned.end is not None)

    async def _send(
        self,
        conn: Connection,
        pull: TrackedPull,
        jobs: Sequence[FamilyJob],
        planned: FollowUpPlan,
    ) -> None:
        """Send events to the unfinished job, or to a new follow-up."""
        to = planned.to
        if to is None:
            newest = jobs[-1]
            ordinal = newest.ordinal + 1
            to = await _insert_follow_up(conn, pull.root, newest.job, ordinal, planned.send)
            await self._cancel_merges(conn, jobs, f"{job_name(to)} follows up")
            created = {"job": to, "follow_up": newest.ordinal + 1, "pr_url": pull.url}
            created["events"] = [event.kind for event in planned.send][:100]
            await store.event(conn, newest.job, "follow_up_created", created)
        for event in planned.send:
            sender = self._actor(event).voter if needs_right(event) else pull.forge
            text = message_text(event, self._mention(pull.forge))
            if await store.send(conn, event.id, to, sender, text) is None:
                await store.ignore(conn, [event.id], f"{job_name(to)} takes no more messages")

    async def _end(
        self,
        conn: Connection,
        pull: TrackedPull,
        jobs: Sequence[FamilyJob],
        event: FollowUpEvent,
        state: str,
    ) -> None:
        """Record the end of a pull request, cancel its open follow-ups, and tell people."""
        newest = jobs[-1].job
        if not await store.end(conn, pull.root, state, event.id):
            await store.ignore(conn, [event.id], f"the pull request is {pull.state}")
            return
        reason = f"the pull request was {state}"
        for job in jobs[1:]:
            await _cancel(conn, job, reason)
        if state == "closed":
            await self._cancel_merges(conn, jobs, reason)
        await _write(conn, newest, "pull_request_ended", event, state=state)
        by = f" by {event.author_name}" if event.author_name else ""
        payload: dict[str, Any] = {"text": f"{pull.url} was {state}{by}", "pull_request": state}
        key = f"pull:{state}:{event.id}"  # it may be closed more than once
        await deliveries.enqueue(conn, pull.root, DeliveryKind.NOTICE, key, payload)

    async def _reopen(
        self,
        conn: Connection,
        pull: TrackedPull,
        jobs: Sequence[FamilyJob],
        event: FollowUpEvent,
    ) -> TrackedPull:
        """Follow up on a closed pull request again, and tell people."""
        if not await store.reopen_pull(conn, pull.root, event.id):
            await store.ignore(conn, [event.id], f"the pull request is {pull.state}")
            return pull
        await _write(conn, jobs[-1].job, "pull_request_reopened", event)
        payload: dict[str, Any] = {"text": f"{pull.url} was reopened"}
        key = f"pull:reopened:{event.id}"
        await deliveries.enqueue(conn, pull.root, DeliveryKind.NOTICE, key, payload)
        return replace(pull, state="open")

    async def _cancel_merges(
        self, conn: Connection, jobs: Sequence[FamilyJob], reason: str
    ) -> None:
        """Cancel the jobs that ask for the merge of earlier work."""
        for merge in await store.merges(conn, [job.job for job in jobs]):
            locked = await job_store.lock_to_cancel(conn, merge)
            if locked is not None and locked.status not in TERMINAL:
                await job_store.cancel_now(conn, merge, BY, reason)


async def _cancel(conn: Connection, job: FamilyJob, reason: str) -> None:
    locked = await job_store.lock_to_cancel(conn, job.job)
    if locked is None or locked.status in TERMINAL:
        return
    if locked.status == "running":
        await job_store.request_cancel(conn, job.job, BY, reason)
    else:
        await job_store.cancel_now(conn, job.job, BY, reason)


async def _write(
    conn: Connection, job: int, kind: str, event: FollowUpEvent, **fields: str
) -> None:
    """Write an event of a job about an event of the forge, without its text."""
    payload = {"event": event.kind, "author": event.author_name, "url": event.url, **fields}
    await store.event(conn, job, kind, {key: value for key, value in payload.items() if value})


async def _insert_follow_up(
    conn: Connection, root: int, parent: int, ordinal: int, events: Sequence[FollowUpEvent]
) -> int:
    """Insert the job that follows up on the pull request of `root`; return its number.

    Its title is about the events. It has the request, the targets and the newest checkpoint of its
    parent, and the requester of the first job. The caller has locked the pull request.
    """
    request = await control.request_columns(conn, parent)
    first = await control.request_columns(conn, root)
    if request is None or first is None:
        raise unknown_job(parent)
    old, _ = request
    row: dict[str, Any] = {key: old[key] for key in INHERITED} | {
        "id": new_id(),
        "idempotency_key": f"follow-up:{root}:{ordinal}",
        "source": CHANNEL,
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
        await store.add(conn, number, root, ordinal, parent)
        await control.copy_checkpoint(conn, parent, number)
        await attachments.inherit(conn, parent, number)
        if old["has_targets"]:
            await deliveries.inherit_targets(conn, parent, number)
    return number
