"""Messages of people to jobs, sent in the transaction that proves the state of the job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from draftsman.database.database import Connection, Database, on_connection
from draftsman.errors import CommandHint, IdempotencyConflict, Refused
from draftsman.forges import store as forges
from draftsman.ids import job_name, new_id, unknown_job
from draftsman.jobs.control import store
from draftsman.jobs.control.job_message import (
    MAX_MESSAGES,
    JobMessage,
    SentMessage,
    check_text,
)
from draftsman.jobs.fits import MESSAGED
from draftsman.jobs.job import AGENT_TYPE, TERMINAL, Status
from draftsman.jobs.requests.service import attachments as files
from draftsman.jobs.runs.run import Lease, lease_lost
from draftsman.jobs.runs.service.checkpoints import Checkpoints
from draftsman.jobs.runs.store import jobs
from draftsman.jobs.runs.store.jobs import LockedJob
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.questions.question import Decision
from draftsman.questions.response import build_response

if TYPE_CHECKING:
    from draftsman.jobs.requests.invocation import FileRef
    from draftsman.questions.question import Question
    from draftsman.questions.service.questions import Questions


class JobMessages:
    """Messages of people to jobs."""

    def __init__(self, db: Database, policy: Policy, questions: Questions) -> None:
        self._db = db
        self._policy = policy
        self._questions = questions

    async def send(
        self,
        job: int,
        actor: Actor,
        text: str,
        *,
        event: str | None = None,
        key: str | None = None,
        attachments: Sequence[FileRef] = (),
    ) -> SentMessage:
        """Store a message; the agent gets it between two turns, or with the next run.

        While an approval of its work is open, that of a person who may decide it is a request for
        changes. A finished job with an open pull request is followed up with the message.
        `event` identifies the message in its channel, and `key` among those of its job: each is a
        single message. Its `attachments` are files in the channel of the actor. Raises NotFound,
        NotPermitted, UsageError for its text, IdempotencyConflict for a key of another text, and
        Refused for a job that has finished, runs no agent or has too many messages.
        """
        actor = self._policy.resolve(actor)
        text = check_text(text)
        if event is None:
            event = str(new_id()) if key is None else f"tell:{job}:{key}"

        async def work(conn: Connection) -> SentMessage:
            locked, review = await self._lock(conn, job, actor)
            name = job_name(job)
            sent = await store.message_of_event(conn, job, actor, event, text)
            if sent is None and review is not None:
                return await self._request_changes(conn, review, actor, event, text, attachments)
            sent = sent or await store.send_message(conn, job, actor, event, text)
            if sent is None:
                url = await forges.request(conn, job, actor, event, text)
                if url is None:
                    raise _finished(locked)
                return SentMessage(job, 0, locked.status, created=True, follow_up=url)
            number, message, created, is_equal = sent
            if key is not None and not is_equal:
                raise IdempotencyConflict(
                    f"the key {key!r} was used for message {message} to {name}, which has another"
                    " text; use another key",
                    job=job,
                )
            if message is None:
                raise Refused(
                    f"has {MAX_MESSAGES} messages, the maximum; cancel it and submit a new request",
                    subject=name,
                )
            if attachments and created:
                await files.add(conn, number, actor, attachments, message)
            return SentMessage(number, message, locked.status, created)

        return await self._db.run_transaction(work)

    async def check(self, job: int, actor: Actor) -> None:
        """Raise the errors of `send`, before a text is asked for."""
        actor = self._policy.resolve(actor)

        async def work(conn: Connection) -> None:
            locked, _ = await self._lock(conn, job, actor)
            if locked.status in TERMINAL and not await forges.is_open(conn, job):
                raise _finished(locked)

        await self._db.run_transaction(work)

    async def _lock(
        self, conn: Connection, job: int, actor: Actor
    ) -> tuple[LockedJob, Question | None]:
        """Lock a job that takes messages of this person; raises as `send`.

        Also return the open approval of its work that the person may decide.
        """
        locked = await jobs.lock_to_cancel(conn, job)
        if locked is None:
            raise unknown_job(job)
        review = await self._questions.open_review(conn, locked.number, actor, locked.invoker_id)
        if review is None:
            self._policy.check(actor, Verb.TELL, invoker=locked.invoker_id)
        if locked.type != AGENT_TYPE:
            raise Refused(
                f"is a job of type {locked.type}, which has no agent to read a message; only"
                f" jobs of type {AGENT_TYPE} take messages",
                subject=job_name(job),
            )
        if locked.canceling and locked.status is Status.RUNNING:
            raise Refused("is being canceled, and takes no more messages", subject=job_name(job))
        return locked, review

    async def _request_changes(
        self,
        conn: Connection,
        review: Question,
        actor: Actor,
        event: str,
        text: str,
        attachments: Sequence[FileRef],
    ) -> SentMessage:
        """Request changes of the work of an approval, whose agent gets the text."""
        job = review.job
        decision = Decision.REQUEST_CHANGES
        response = build_response(event, review.name, decision=decision, reason=text)
        verdict = await self._questions.record(conn, job, review.ordinal, response, actor)
        sent = await store.message_of_event(conn, job, actor, event, text)
        message = None if sent is None else sent[1]
        if message is None:
            raise Refused(verdict.reason or f"{review.name} does not accept this message")
        if attachments:
            await files.add(conn, job, actor, attachments, message)
        return SentMessage(job, message, Status.RESUMED, created=True, review=review.name)

    of_job = on_connection(store.messages_of_job)


def _finished(locked: LockedJob) -> Refused:
    name = job_name(locked.number)
    retry = CommandHint("retry", name, lead="to continue its work")
    return MESSAGED.refusal(name, locked.status, retry)


# Messages of people, as the run of a job gives them to its agent.


class RunMessages:
    """Reads and writes of a run about the messages of its job; writes prove the lease."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._checkpoints = Checkpoints(db)

    async def undelivered(self, job: int) -> list[JobMessage]:
        """Return the messages that no run has delivered, oldest first."""
        async with self._db.connection() as conn:
            return [
                item for item in await store.messages_of_job(conn, job) if item.delivered_at is None
            ]

    async def hand(self, lease: Lease, ordinals: Sequence[int]) -> None:
        """Record that the agent is given these messages."""
        if not await self._db.run_transaction(
            lambda conn: store.hand_messages(conn, lease, ordinals)
        ):
            raise lease_lost(lease)

    async def deliver(self, lease: Lease, ordinals: Sequence[int]) -> None:
        """Record that these messages are delivered."""
        if not await self._db.run_transaction(
            lambda conn: store.deliver_messages(conn, lease, ordinals)
        ):
            raise lease_lost(lease)

    async def deliver_with_checkpoint(
        self, lease: Lease, ordinals: Sequence[int], data: dict[str, Any], bundle: bytes | None
    ) -> None:
        """Save a checkpoint that has these messages, as `Checkpoints.save`, and record it."""
        await self._checkpoints.save(
            lease, data, bundle, lambda conn: store.deliver_messages(conn, lease, ordinals)
        )
