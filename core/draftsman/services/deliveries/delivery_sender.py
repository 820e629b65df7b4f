"""delivery -> channel. At least once on the way, shown once: what may be there is looked for."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from draftsman.domain.messages.attachment import CHAT_CHANNELS, file_content, overflow_files
from draftsman.domain.messages.delivery import (
    COPY_GONE,
    QUESTION_KINDS,
    ChannelName,
    ClaimedDelivery,
    Deferred,
    DeliveryKind,
    DeliveryOutcome,
    DeliveryStatus,
    DeliveryTransition,
    File,
    Message,
    Obsolete,
    RateLimit,
    Receipt,
    SendResult,
    Unconfirmed,
    after_attempt,
)
from draftsman.domain.messages.target import Target
from draftsman.domain.people.policy import Policy
from draftsman.domain.question import QuestionStatus
from draftsman.domain.retries.error_classes import ErrorClass, classify
from draftsman.domain.retries.retry_policy import LONGEST_WAIT, RetryPolicy
from draftsman.errors import DraftsmanError, Failure
from draftsman.log import redact
from draftsman.ports import Channel
from draftsman.services.deliveries.message_builder import (
    build_message,
    requester,
    with_identity_links,
)
from draftsman.settings import NotificationSettings
from draftsman.store import checkpoints, delivery_claims, questions
from draftsman.store import deliveries as store
from draftsman.store.postgres.database import Connection, Database

COPIED_KINDS: Final = frozenset(
    {DeliveryKind.QUESTION, DeliveryKind.REMINDER, DeliveryKind.RESULT, DeliveryKind.NOTICE}
)
"""Kinds that may need files beside them, or copies for others."""
PERSONAL_CHANNELS: Final = frozenset({ChannelName.SLACK})
"""Channels where somebody can be told alone."""
URGENT_RESERVE: Final = 1
"""Calls of each bucket with a burst that are kept for urgent deliveries."""
_log = logging.getLogger(__name__)


class DeliverySender:
    """Claims deliveries, sends them, and writes how that ended."""

    def __init__(
        self,
        db: Database,
        settings: NotificationSettings,
        fallback: Target | None,
        policy: Policy,
    ) -> None:
        self._db = db
        self._policy = policy
        self._lease = settings.lease
        self._call_lease = settings.timeout
        self._fallback = fallback
        self._limits = RetryPolicy(
            max_retries=settings.max_attempts,
            base_delay=settings.base_delay,
            max_delay=settings.max_delay,
        )
        self._buckets: set[str] = set()

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
    ) -> list[ClaimedDelivery]:
        """Take what is due of one channel, of targets behind `after`, a share of each.

        Targets that are `reserved` give their urgent deliveries alone. What is claimed under the
        session lock `sender` is another's as soon as that is free; else when the lease is over.
        """
        wanted = {"free": free, "share": share, "busy": busy, "reserved": reserved, "after": after}
        wanted |= {"lease": self._lease, "sender": sender}
        async with self._db.connection() as conn:
            return await delivery_claims.claim(conn, channel, **wanted)  # type: ignore[arg-type]

    async def reclaim(self, channels: Sequence[ChannelName]) -> int:
        """Make due what processes that ended have in their hands; return how many."""
        async with self._db.connection() as conn:
            return await delivery_claims.reclaim(conn, channels)

    async def next_due(self, channel: ChannelName) -> float | None:
        """Return the seconds until something of the channel is due; None: nothing is waiting."""
        async with self._db.connection() as conn:
            return await delivery_claims.next_due(conn, channel)

    async def send(
        self, item: ClaimedDelivery, channel: Channel, until: float | None = None
    ) -> DeliveryOutcome:
        """Say it, unless it was said or there is nothing to say any more.

        Not after `until`, by the monotonic clock: whoever was stopped may have been taken for dead.
        """
        async with self._db.connection() as conn:
            facts = await store.message_facts(conn, item.seq)
            question, policy = None, self._policy
            if item.question is not None:
                question = await questions.get(conn, item.job, item.question)
            if item.kind in QUESTION_KINDS:
                policy = await with_identity_links(conn, policy, item.channel)
        message = build_message(item, facts, question, policy)
        if item.in_doubt and (found := await channel.find(message)) is not None:
            return found
        if item.call_left > 0:
            return Deferred(item.call_left, limited=False)
        if item.kind in QUESTION_KINDS and question and question.status is not QuestionStatus.OPEN:
            return Obsolete()
        if item.kind is DeliveryKind.QUESTION_CLOSED:
            copy = await self._copy(message, facts, channel)
            if not isinstance(copy, Receipt):
                return copy
            message = replace(message, edits=copy.ref)
        elif item.kind is DeliveryKind.STATUS and facts.root is not None:
            message = replace(message, edits=facts.root)
        if wait := await self._take(_limits(channel.limits(message), item)):
            return Deferred(wait)
        if until is not None and time.monotonic() > until:
            return Unconfirmed("the lease was all but over")
        ended = await self._call_leased(item, channel, message)
        if ended is None:
            return Deferred(0.0, limited=False)
        await self._heed(channel, message, ended)
        return ended

    async def record(
        self, item: ClaimedDelivery, outcome: DeliveryOutcome
    ) -> DeliveryStatus | None:
        """Write how it ended, its job locked first; None when another process took it over."""
        end = after_attempt(outcome, item.attempts, self._limits)
        if end.error is not None:
            end = replace(end, error=redact(end.error)[:2000])
        if _is_limited(outcome) and (end.delay or 0) <= delivery_claims.HEAD_START:
            end = replace(end, due=item.due_at)  # the bucket lets it wait, and it keeps its place

        async def work(conn: Connection) -> tuple[DeliveryStatus, int | None] | None:
            await store.lock(conn, item.job)
            fallback = await self._instead(conn, item, outcome)
            written = await store.finish(conn, item, end, fallback)
            if isinstance(outcome, Receipt) and written is not None:
                await self._follow(conn, item, outcome)
            return written

        written = await self._db.run_transaction(work)
        if written is None:
            _log.warning("D-%s: delivery %s was taken over by another", item.job, item.seq)
            return None
        status, instead = written
        if status is DeliveryStatus.DEAD_LETTER:
            _mourn(item, end, instead)
        return status

    async def pause(self, channel: ChannelName, seconds: float, reason: str) -> None:
        """Send nothing of a channel for so long, in any process."""
        async with self._db.connection() as conn:
            await store.pause(conn, str(channel), seconds, redact(reason)[:500])

    async def resume(self, channel: ChannelName) -> None:
        """Send at once what waits because the channel was paused; nothing, where it is not."""
        async with self._db.connection() as conn:
            await store.resume(conn, channel)

    async def _instead(
        self, conn: Connection, item: ClaimedDelivery, outcome: DeliveryOutcome
    ) -> Target | None:
        """Return the target of a replacement: the requester where the channel refused for good."""
        refused = isinstance(outcome, Failure) and classify(outcome) is ErrorClass.PERMANENT
        if not refused or item.channel not in PERSONAL_CHANNELS:
            return self._fallback
        facts = await store.message_facts(conn, item.seq)
        policy = await with_identity_links(conn, self._policy, item.channel)
        person = requester(policy, facts.invoker_id, item.channel)
        if person is None or person == item.target:
            return self._fallback
        return Target(item.channel, person)

    async def _follow(self, conn: Connection, item: ClaimedDelivery, sent: Receipt) -> None:
        """Write what belongs to it: its files, and a copy for those asked who cannot see it."""
        if item.channel not in CHAT_CHANNELS or item.kind not in COPIED_KINDS:
            return
        facts = await store.message_facts(conn, item.seq)
        question = None
        if item.question is not None:
            question = await questions.get(conn, item.job, item.question)
        message = build_message(item, facts, question, self._policy)
        await store.attach(conn, item.seq, overflow_files(message))
        if sent.absent:
            await store.copy_to(conn, item.seq, sent.absent)

    async def _copy(
        self, message: Message, facts: store.MessageFacts, channel: Channel
    ) -> DeliveryOutcome:
        """Return where the copy is that is to be rewritten; Moot where nobody can see one."""
        if facts.copy_ref is not None:
            return Receipt(facts.copy_ref)
        if not facts.copy_in_doubt or facts.copy_kind is None:
            return Obsolete()
        when = facts.copy_created_at or message.created_at
        copy = replace(message, marker=str(facts.copy_id), kind=facts.copy_kind, created_at=when)
        return await channel.find(copy) or Obsolete()

    async def _call_leased(
        self, item: ClaimedDelivery, channel: Channel, message: Message
    ) -> SendResult | None:
        """Call the channel under a lease of the call; None where the delivery is another's.

        The lease is as long as `timeout`, and renewed while the call lasts. The call is given up at
        half of it: what it sent last has the other half to arrive, before another process that
        finds no copy repeats it.
        """
        loop, half = asyncio.get_running_loop(), self._call_lease / 2
        asked = loop.time()
        if not await self._begin_call(item):
            return None

        async def renew() -> None:
            while True:
                await asyncio.sleep(half / 2)
                asked = loop.time()
                with contextlib.suppress(DraftsmanError):
                    if not await self._begin_call(item):
                        return
                    deadline.reschedule(asked + half)

        try:
            async with asyncio.timeout_at(asked + half) as deadline:
                renewing = asyncio.create_task(renew())
                try:
                    return await self._call(channel, message)
                finally:
                    renewing.cancel()
                    await asyncio.gather(renewing, return_exceptions=True)
        except TimeoutError:
            return Unconfirmed("the lease of the call was not renewed")

    async def _begin_call(self, item: ClaimedDelivery) -> bool:
        async with self._db.connection() as conn:
            return await delivery_claims.begin_call(conn, item, self._call_lease)

    async def _call(self, channel: Channel, message: Message) -> SendResult:
        if message.kind is DeliveryKind.FILE:
            return await channel.upload(message, await self._file(message))
        if message.edits is None:
            return await channel.send(message)
        ended = await channel.edit(message)
        gone = isinstance(ended, Failure) and ended.code == COPY_GONE
        if gone and message.kind is DeliveryKind.STATUS:
            return await channel.send(replace(message, edits=None))
        return Receipt(message.edits) if gone else ended

    async def _file(self, message: Message) -> File:
        payload = message.payload or {}
        name = str(payload.get("name", "file"))
        if (text := file_content(message)) is not None:
            return File(name, text.encode("utf-8", "replace"))
        async with self._db.connection() as conn:
            return File(name, await checkpoints.content(conn, int(payload.get("artifact") or 0)))

    async def _take(self, limits: Sequence[RateLimit]) -> float | None:
        if not limits:
            return None
        async with self._db.connection() as conn:
            if new := [limit for limit in limits if limit.bucket not in self._buckets]:
                await store.make_buckets(conn, new)
                self._buckets |= {limit.bucket for limit in new}
            return await store.consume_tokens(conn, limits)

    async def _heed(self, channel: Channel, message: Message, ended: SendResult) -> None:
        """Let every process wait as long as the other side wants."""
        if isinstance(ended, Failure) and ended.retry_after:
            bucket, reason = channel.bucket(message, ended), redact(str(ended))[:500]
            seconds = min(ended.retry_after, LONGEST_WAIT)
            async with self._db.connection() as conn:
                await store.pause(conn, bucket, seconds, reason)


def _limits(limits: Sequence[RateLimit], item: ClaimedDelivery) -> Sequence[RateLimit]:
    """Return what a delivery takes from: one that is not urgent leaves the reserve."""
    if item.urgent:
        return limits
    return [replace(limit, burst=max(1, limit.burst - URGENT_RESERVE)) for limit in limits]


def _is_limited(outcome: DeliveryOutcome) -> bool:
    """Return whether a bucket is closed to what was tried, by us or by the other side."""
    if isinstance(outcome, Deferred):
        return outcome.limited
    return isinstance(outcome, Failure) and bool(outcome.retry_after)


def _mourn(item: ClaimedDelivery, end: DeliveryTransition, instead: int | None) -> None:
    """Let operators know what was not said, and to whom: what it says is not for a log."""
    where = f"; delivery {instead} says it instead" if instead else ""
    _log.error(
        "delivery %s (%s) of D-%s to %s:%s is dead: %s%s",
        *(item.seq, item.kind, item.job, item.channel, item.target, end.error, where),
    )
