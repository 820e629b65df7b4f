"""What people do to jobs: cancel, retry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from draftsman.domain.ids import new_id
from draftsman.domain.job import TERMINAL, Status
from draftsman.domain.people.actor import Actor
from draftsman.domain.people.policy import Policy, Verb
from draftsman.domain.retries.retry_policy import CHAIN_LIMIT
from draftsman.domain.text import clean
from draftsman.errors import CommandHint, LostRace, NotFound, OptionHint, Refused
from draftsman.services.jobs.submissions import SUBMIT_ATTEMPTS, SubmittedJob
from draftsman.store import deliveries
from draftsman.store import job_control as store
from draftsman.store import submissions as requests
from draftsman.store.postgres.database import Connection, Database

AGAIN_OPTION = OptionHint("again", lead="to run it once more give")
"""What retries a job that completed."""
REASON_LIMIT = 2000
"""Characters of a reason that are kept."""
_INHERITED = (
    "type",
    "queue",
    "priority",
    "subject_key",
    "mode",
    "source_type",
    "external_event_id",
    "repo_owner",
    "repo_name",
    "ticket_url",
    "ticket_title",
    "ticket_text",
    "payload",
    "overrides",
    "requested_skills",
    "tags",
    "agent",
    "max_attempts",
    "max_retries",
    "on_lost",
    "request_digest",
)


@dataclass(frozen=True, slots=True)
class CancelResult:
    """What a cancel did: `status` is canceled, or running while its worker is being told."""

    number: int
    status: Status
    requested: bool


class JobControl:
    """Cancels and retries."""

    def __init__(self, db: Database, policy: Policy) -> None:
        self._db = db
        self._policy = policy

    async def cancel(
        self, job: int, actor: Actor, reason: str | None = None, *, force: bool = False
    ) -> CancelResult:
        """End a job: at once, or through its worker when it is running; `force` does not wait.

        Raises NotFound, NotPermitted, Refused when the job ended first (the message says how).
        """
        actor = self._policy.resolve(actor)
        reason = clean(reason)[:REASON_LIMIT] if reason else None

        async def work(conn: Connection) -> CancelResult:
            locked = await store.lock(conn, job)
            if locked is None:
                raise _unknown(job)
            self._policy.check(actor, Verb.CANCEL, invoker=locked.invoker_id)
            if locked.status in TERMINAL:
                raise Refused(f"is already {locked.status}; nothing to cancel", subject=f"D-{job}")
            if locked.status is Status.RUNNING and not force:
                await store.request_cancel(conn, job, actor.name, reason)
                return CancelResult(job, Status.RUNNING, requested=True)
            await store.cancel_now(conn, job, actor.name, reason)
            return CancelResult(job, Status.CANCELED, requested=False)

        return await self._db.run_transaction(work)

    async def refuse(self, job: int, what: str, event: str, actor: Actor, reason: str) -> None:
        """Note that somebody wanted to `cancel` or `retry` a job and may not.

        Once for the `event` of a channel that may come twice. Raises NotFound.
        """
        detail = {"action": what, "event": event, "reason": reason[:REASON_LIMIT]}

        async def work(conn: Connection) -> None:
            if await store.lock(conn, job) is None:
                raise _unknown(job)
            await store.refuse(conn, job, actor.name, detail)

        await self._db.run_transaction(work)

    async def retry(
        self,
        job: int,
        actor: Actor,
        *,
        fresh: bool = False,
        again: bool = False,
        with_answer: bool = False,
    ) -> SubmittedJob:
        """Make a new job of a finished one, once: a second call finds the first one's job.

        It inherits the request and, unless `fresh`, the newest checkpoint and work bundle; never
        answers, but `with_answer` carries on with the one that came too late. Raises NotFound,
        NotPermitted, Refused (not finished; completed without `again`; no late answer).
        """
        actor = self._policy.resolve(actor)

        async def work(conn: Connection) -> SubmittedJob:
            locked = await store.lock(conn, job)
            if locked is None:
                raise _unknown(job)
            self._policy.check(actor, Verb.RETRY, invoker=locked.invoker_id)
            if locked.status not in TERMINAL:
                raise Refused(
                    f"is {locked.status}, not finished; cancel it first", subject=f"D-{job}"
                )
            if locked.status is Status.COMPLETED and not again:
                raise Refused("completed", subject=f"D-{job}", hint=AGAIN_OPTION)
            late = await self._late(conn, job) if with_answer else {}
            made = await insert_retry(conn, job, actor, late)
            if made.how == "created" and not fresh:
                await store.copy_checkpoint(conn, job, made.number)
            return made

        return await self._db.run_transaction(work)

    async def _late(self, conn: Connection, job: int) -> dict[str, str]:
        found = await store.late_answer(conn, job)
        if found is None:
            raise Refused(f"no answer came too late for D-{job}; retry it without one")
        return {found[0]: found[1]}


async def insert_retry(
    conn: Connection, job: int, actor: Actor, answers: Mapping[str, str] | None = None
) -> SubmittedJob:
    """Make the one retry of a job that the caller has locked.

    `answers`, by key, are given in the actor's name when the new job asks. Raises Refused when the
    chain is too long, or the subject has another live job.
    """
    found = await store.request_columns(conn, job)
    if found is None:
        raise _unknown(job)
    old, root = found
    length = int(old["chain_length"]) + 1
    if length > CHAIN_LIMIT:
        raise Refused(f"was retried {CHAIN_LIMIT} times; submit a new request", subject=f"D-{job}")
    row: dict[str, Any] = {key: old[key] for key in _INHERITED} | {
        "id": new_id(),
        "idempotency_key": f"retry:{root}:{length}",
        "source": actor.channel,
        "invoker_id": actor.voter,
        "invoker_display_name": actor.display_name,
        "retry_of": job,
        "chain_length": length,
        "has_targets": old["has_targets"],
    }
    if answers:
        asked = old["overrides"].get("answers")
        given = asked if isinstance(asked, dict) else {}
        row["overrides"] = {**old["overrides"], "answers": {**given, **answers}}
    taken = await _insert(conn, row, actor)
    if taken.how == "deduplicated" and taken.request_digest != old["request_digest"]:
        raise Refused(
            "has the key of this retry; it was not made by one", subject=f"D-{taken.number}"
        )
    if taken.how == "joined":
        raise Refused(
            "is live for the same subject; it goes on instead", subject=f"D-{taken.number}"
        )
    if taken.how == "created" and old["has_targets"]:
        await deliveries.inherit_targets(conn, job, taken.number)
    return SubmittedJob(taken.number, taken.id, taken.status, taken.how)


async def _insert(conn: Connection, row: dict[str, Any], actor: Actor) -> requests.SubmitResult:
    """Insert one request; nothing comes back while a twin is just being committed: look again."""
    for _ in range(SUBMIT_ATTEMPTS):
        if taken := await requests.submit(conn, [row], actor.name):
            return taken[0]
    raise LostRace("another request for the same subject is still being committed")


def _unknown(job: int) -> NotFound:
    return NotFound(f"there is no job D-{job}", hint=CommandHint("jobs"))
