"""Sending of deliveries: at least once, and only after a look for an earlier copy."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from draftsman.channels import ChannelName, registry
from draftsman.channels.accounts import person_target, reaches_people
from draftsman.database.database import Connection, Database, on_connection
from draftsman.deliveries.attachment import (
    file_content,
    overflow_files,
    refused_file,
)
from draftsman.deliveries.channel import Channel
from draftsman.deliveries.delivery import (
    COPY_GONE,
    NOT_SERVED,
    ClaimedDelivery,
    Deferred,
    DeliveryKind,
    DeliveryOutcome,
    DeliveryStatus,
    DeliveryTransition,
    File,
    Message,
    Obsolete,
    Receipt,
    SendResult,
    Unconfirmed,
    after_attempt,
)
from draftsman.deliveries.message_facts import MessageFacts
from draftsman.deliveries.service.message_builder import build_message
from draftsman.deliveries.service.message_reader import read_message
from draftsman.deliveries.service.quiet_hours import recipient
from draftsman.deliveries.service.rate_limits import RateLimits
from draftsman.deliveries.service.recipients import requester
from draftsman.deliveries.store import deliveries as store
from draftsman.deliveries.store import delivery_claims, rate_limits
from draftsman.deliveries.target import Target
from draftsman.errors import DraftsmanError, Failure
from draftsman.formats.shown_zone import shown_in
from draftsman.ids import job_name
from draftsman.jobs.retries import LONGEST_WAIT, ErrorClass, RetryPolicy, classify
from draftsman.jobs.runs.store import checkpoints, jobs
from draftsman.log import redact
from draftsman.people.policy import Policy
from draftsman.people.service.linked_policy import with_identity_links
from draftsman.questions.store import questions
from draftsman.settings.notifications import NotificationSettings
from draftsman.tracing.tracer import SpanContext, submission_of

COPIED_KINDS: Final = frozenset(
    {DeliveryKind.QUESTION, DeliveryKind.REMINDER, DeliveryKind.RESULT, DeliveryKind.NOTICE}
)
"""Kinds that may need files, or copies for other people."""
NOT_SERVED_PAUSE: Final = 1.0
"""Seconds until a delivery is due again whose target this process has lost since its claim."""
_log = logging.getLogger(__name__)


class DeliverySender:
    """Claims deliveries, sends them, and records the outcome."""

    def __init__(
        self,
        *,
        db: Database,
        policy: Policy,
        settings: NotificationSettings,
        fallback: Target | None,
    ) -> None:
        self._db = db
        self._policy = policy
        self._lease = settings.lease
        self._call_lease = settings.timeout
        self._fallback = fallback
        self._retries = RetryPolicy(
            max_retries=settings.max_attempts,
            base_delay=settings.base_delay,
            max_delay=settings.max_delay,
        )
        self.limits = RateLimits(db)

    async def submission(self, job: int) -> SpanContext | None:
        """Return the submission of a job, the parent of the spans of its deliveries."""
        with contextlib.suppress(DraftsmanError):
            async with self._db.connection() as conn:
                if (found := await jobs.submission(conn, job)) is not None:
                    return submission_of(*found)
        return None

    async def claim(
        self,
        channel: ChannelName,
        *,
        free: int,
        share: int,
        busy: Sequence[str] = (),
        reserved: Sequence[str] = (),
        after: str = "",
        sender: int | None = None,
        served: Sequence[str] | None = None,
    ) -> list[ClaimedDelivery]:
        """Claim due deliveries of a channel, `share` at most for each target after `after`.

        Only those to targets `served`, as `Channel.served` returns them. Of `reserved` targets,
        only urgent deliveries are claimed. A claim under the session lock `sender` ends as soon as
        that lock is free; otherwise when its lease expires.
        """
        async with self._db.connection() as conn:
            return await delivery_claims.claim(
                conn,
                channel,
                free=free,
                share=share,
                busy=busy,
                reserved=reserved,
                after=after,
                lease=self._lease,
                sender=sender,
                served=served,
            )

    rescue = on_connection(delivery_claims.rescue)
    next_due = on_connection(delivery_claims.next_due)

    async def send(
        self, item: ClaimedDelivery, channel: Channel, until: float | None = None
    ) -> DeliveryOutcome:
        """Send a delivery, unless it was sent before or is obsolete.

        Nothing is sent after `until`, by the monotonic clock: another process may have claimed the
        delivery while this process was suspended.
        """
        facts, message, instead = await read_message(self._db, self._policy, item)
        sought = replace(message, kind=item.kind)  # an edit has the kind of its message
        if item.in_doubt and (receipt := await channel.find(sought)) is not None:
            return receipt
        if item.call_left > 0:
            return Deferred(item.call_left, limited=False)
        if instead is not None:
            return instead
        if item.kind is DeliveryKind.QUESTION_CLOSED:
            copy = await self._find_copy(message, facts, channel)
            if not isinstance(copy, Receipt):
                return copy
            message = replace(message, edits=copy.ref)
        elif item.kind is DeliveryKind.STATUS and facts.root is not None:
            message = replace(message, edits=facts.root)
        if wait := await self.limits.consume(channel.limits(message), urgent=item.urgent):
            return Deferred(wait)
        if until is not None and time.monotonic() > until:
            return Unconfirmed("the lease was about to expire")
        reader = recipient(self._policy, item.target, item.channel)
        with shown_in(self._policy.zone_of(reader)):
            result = await self._call_leased(item, channel, message)
        if result is None:
            return Deferred(0.0, limited=False)
        if isinstance(result, Failure) and result.code == NOT_SERVED:
            return Deferred(NOT_SERVED_PAUSE, str(result), limited=False)
        if isinstance(result, Failure) and result.retry_after:
            seconds = min(result.retry_after, LONGEST_WAIT)
            await self.limits.pause(channel.bucket(message, result), seconds, str(result))
        return result

    async def record(
        self, item: ClaimedDelivery, outcome: DeliveryOutcome
    ) -> DeliveryStatus | None:
        """Record the outcome under the job's lock; return the new status.

        None: another process took the delivery over.
        """
        transition = after_attempt(outcome, item.attempts, self._retries)
        if transition.error is not None:
            error = transition.error
            if item.kind is DeliveryKind.FILE:
                error = f"{item.payload.get('name', 'file')}: {error}"
            transition = replace(transition, error=redact(error)[:2000])
        if _is_limited(outcome) and (transition.delay or 0) <= delivery_claims.HEAD_START:
            # keeps its place in the order while the bucket is empty
            transition = replace(transition, due=item.due_at)

        async def work(conn: Connection) -> tuple[DeliveryStatus, int | None] | None:
            await jobs.lock(conn, item.job)
            fallback = await self._fallback_target(conn, item, outcome)
            result = await store.finish(conn, item, transition, fallback)
            if result is not None and (text := refused_file(item, outcome, transition)):
                await store.warn(conn, item.seq, text)
            if isinstance(outcome, Receipt) and result is not None:
                await self._write_follow_ups(conn, item, outcome)
            return result

        result = await self._db.run_transaction(work)
        if result is None:
            _log.warning(
                "%s: delivery %s was taken over by another process", job_name(item.job), item.seq
            )
            return None
        status, replacement = result
        if status is DeliveryStatus.DEAD_LETTER:
            _log_dead(item, transition, replacement)
        return status

    resume = on_connection(rate_limits.resume)

    async def _fallback_target(
        self, conn: Connection, item: ClaimedDelivery, outcome: DeliveryOutcome
    ) -> Target | None:
        """Return the target of a replacement: the requester after a permanent refusal."""
        refused = isinstance(outcome, Failure) and classify(outcome) is ErrorClass.PERMANENT
        if not refused or not reaches_people(item.channel):
            return self._fallback
        facts = await store.message_facts(conn, item.seq)
        policy = await with_identity_links(conn, self._policy, item.channel)
        account = requester(policy, facts.invoker_id, item.channel)
        target = None if account is None else person_target(item.channel, account)
        return self._fallback if target in (None, item.target) else Target(item.channel, target)

    async def _write_follow_ups(
        self, conn: Connection, item: ClaimedDelivery, receipt: Receipt
    ) -> None:
        """Write the files of a sent delivery, and copies for people who cannot see it."""
        if item.channel not in registry.taking_answers() or item.kind not in COPIED_KINDS:
            return
        facts = await store.message_facts(conn, item.seq)
        question = None
        if item.question is not None:
            question = await questions.get(conn, item.job, item.question)
        message = build_message(item, facts, question, self._policy)
        await store.attach(conn, item.seq, overflow_files(message))
        if receipt.absent and facts.ladder is None:
            await store.copy_to(conn, item.seq, receipt.absent)

    async def _find_copy(
        self, message: Message, facts: MessageFacts, channel: Channel
    ) -> DeliveryOutcome:
        """Return the copy to rewrite; Obsolete where there is none."""
        if facts.copy_ref is not None:
            return Receipt(facts.copy_ref)
        if not facts.copy_in_doubt or facts.copy_kind is None:
            return Obsolete()
        created_at = facts.copy_created_at or message.created_at
        search = replace(
            message, marker=str(facts.copy_id), kind=facts.copy_kind, created_at=created_at
        )
        return await channel.find(search) or Obsolete()

    async def _call_leased(
        self, item: ClaimedDelivery, channel: Channel, message: Message
    ) -> SendResult | None:
        """Call the channel under a lease; None where another process took the delivery.

        The lease lasts `timeout` and is renewed during the call. The call is abandoned after half
        of it, so that its last request has the other half to arrive before another process, which
        finds no copy, repeats it.
        """
        loop = asyncio.get_running_loop()
        half = self._call_lease / 2
        renewed_at = loop.time()
        if not await self._begin_call(item):
            return None

        async def renew() -> None:
            while True:
                await asyncio.sleep(half / 2)
                renewed_at = loop.time()
                with contextlib.suppress(DraftsmanError):
                    if not await self._begin_call(item):
                        return
                    deadline.reschedule(renewed_at + half)

        try:
            async with asyncio.timeout_at(renewed_at + half) as deadline:
                renewing = asyncio.create_task(renew())
                try:
                    return await self._call(channel, message)
                finally:
                    renewing.cancel()
                    await asyncio.gather(renewing, return_exceptions=True)
        except TimeoutError:
            return Unconfirmed("the lease could not be renewed")

    async def _begin_call(self, item: ClaimedDelivery) -> bool:
        async with self._db.connection() as conn:
            return await delivery_claims.begin_call(conn, item, self._call_lease)

    async def _call(self, channel: Channel, message: Message) -> SendResult:
        if message.kind is DeliveryKind.FILE:
            return await channel.upload(message, await self._file(message))
        if message.edits is None:
            return await channel.send(message)
        result = await channel.edit(message)
        copy_is_gone = isinstance(result, Failure) and result.code == COPY_GONE
        if copy_is_gone and message.kind is DeliveryKind.STATUS:
            return await channel.send(replace(message, edits=None))
        return Receipt(message.edits) if copy_is_gone else result

    async def _file(self, message: Message) -> File:
        payload = message.payload or {}
        name = str(payload.get("name", "file"))
        if (text := file_content(message)) is not None:
            return File(name, text.encode("utf-8", "replace"))
        async with self._db.connection() as conn:
            return File(name, await checkpoints.content(conn, int(payload.get("artifact") or 0)))


def _is_limited(outcome: DeliveryOutcome) -> bool:
    """Return whether a rate limit, ours or the service's, stopped the delivery."""
    if isinstance(outcome, Deferred):
        return outcome.limited
    return isinstance(outcome, Failure) and bool(outcome.retry_after)


def _log_dead(
    item: ClaimedDelivery, transition: DeliveryTransition, replacement: int | None
) -> None:
    """Log a dead letter without its content."""
    suffix = f"; replaced by delivery {replacement}" if replacement else ""
    _log.error(
        "delivery %s (%s) of %s to %s:%s is a dead letter: %s%s",
        item.seq,
        item.kind,
        job_name(item.job),
        item.channel,
        item.target,
        transition.error,
        suffix,
    )
