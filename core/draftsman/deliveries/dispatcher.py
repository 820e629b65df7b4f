"""Delivery dispatcher: claims and sends due deliveries, each channel separately.

Each channel has a limited number of deliveries under way, and a smaller number for each target: a
slow target delays no other.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from draftsman.deliveries.channel import Channel
from draftsman.deliveries.delivery import (
    ClaimedDelivery,
    Deferred,
    DeliveryOutcome,
    Receipt,
    Unconfirmed,
)
from draftsman.deliveries.service.delivery_sender import DeliverySender
from draftsman.deliveries.store.delivery_claims import HEAD_START
from draftsman.errors import DatabaseUnreachable, DraftsmanError, Failure
from draftsman.formats.amounts import counted
from draftsman.ids import job_name
from draftsman.metrics import Counter, Distribution, Histogram, Totals
from draftsman.processes.lifecycle import OutageGuard, StopSignal
from draftsman.settings.notifications import NotificationSettings
from draftsman.tracing.tracer import Attributes, Kind, Span, active

CALLS_PER_ATTEMPT: Final = 3
"""Maximum calls in an attempt: find an earlier copy, find the copy to rewrite, send."""
MIN_WAIT: Final = 0.01
LOCKED_WAIT: Final = 0.1
"""Seconds to wait for due deliveries that another transaction has locked."""
LIMITED_WAIT: Final = 0.1
"""Minimum seconds between two claims while a rate limit stops a target: each new delivery of that
target wakes the process, but cannot be sent."""
RESCUE_INTERVAL: Final = 1.0
"""Interval of looking for deliveries of processes that ended, in seconds."""
LOCK_TIMEOUT: Final = 2.0
"""Maximum seconds that the first claim waits for the session lock."""
SENT: Final = Totals(
    Counter(
        "delivery_attempts_total",
        "Attempts of this process to deliver a message: sent, failed, unconfirmed (it may have"
        " arrived), deferred or obsolete.",
        ("channel", "outcome"),
    )
)
LATENESS: Final = Distribution(
    Histogram(
        "delivery_lateness_seconds",
        "Durations from when a message was due until this process had sent it.",
        ("channel",),
    )
)
_log = logging.getLogger(__name__)


class DeliveryDispatcher:
    """Sends the deliveries of a process; `run` returns when none is under way after a stop.

    `sender` returns the number of the process's session lock, None while it is not held.
    """

    def __init__(
        self,
        delivery_sender: DeliverySender,
        channels: Sequence[Channel],
        settings: NotificationSettings,
        *,
        sender: Callable[[], int | None] | None = None,
    ) -> None:
        self.stop = StopSignal(self.wake)
        self._woken = asyncio.Event()
        self._delivery_sender = delivery_sender
        self._channels = channels
        self._sender = sender
        self._channel_senders = {
            str(channel.name): ChannelSender(
                delivery_sender,
                channel,
                settings,
                stop=self.stop,
                sender=sender or (lambda: None),
            )
            for channel in channels
        }

    def wake(self, channel: str = "") -> None:
        """Claim at once, for a channel or for all."""
        self._woken.set()
        for name, channel_sender in self._channel_senders.items():
            if channel in ("", name):
                channel_sender.wake()

    async def run(self) -> None:
        """Send until stopped, then finish the deliveries under way."""
        rescuing: asyncio.Task[None] | None = None
        try:
            if self._sender is not None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOCK_TIMEOUT):
                        await self._woken.wait()
                rescuing = asyncio.create_task(self._rescue(self._sender))
            await asyncio.gather(
                *(channel_sender.run() for channel_sender in self._channel_senders.values())
            )
        finally:
            if rescuing is not None:
                rescuing.cancel()
                await asyncio.gather(rescuing, return_exceptions=True)
            for channel in self._channels:
                await channel.close()

    async def _rescue(self, sender: Callable[[], int | None]) -> None:
        """Rescue deliveries of processes that ended, while the session lock is held."""
        names = [channel.name for channel in self._channels]
        while not self.stop:
            if sender() is not None:
                try:
                    if count := await self._delivery_sender.rescue(names):
                        rescued = counted(count, "delivery", "deliveries")
                        _log.info("rescued %s of a process that ended", rescued)
                        self.wake()
                except DraftsmanError as error:
                    _log.debug("could not rescue deliveries: %s", error)
            await self.stop.wait(RESCUE_INTERVAL)


class ChannelSender:
    """Claims and sends the deliveries of a channel."""

    def __init__(
        self,
        delivery_sender: DeliverySender,
        channel: Channel,
        settings: NotificationSettings,
        *,
        stop: StopSignal,
        sender: Callable[[], int | None],
    ) -> None:
        self._delivery_sender = delivery_sender
        self._sender = sender
        self._channel = channel
        self._settings = settings
        self._stop = stop
        self._woken = asyncio.Event()
        self._under_way: dict[asyncio.Task[None], str] = {}
        self._outage = OutageGuard(f"{channel.name} deliveries")
        self._closed: dict[str, float] = {}
        """Rate-limited targets, until a time of the monotonic clock."""
        self._reserved: dict[str, float] = {}
        """Targets with only the urgent reserve left, until a time of the monotonic clock."""
        self._after = ""
        self._pause = 0.0

    def wake(self) -> None:
        """Claim at once."""
        self._woken.set()

    async def run(self) -> None:
        """Claim and send until stopped; then finish the deliveries under way."""
        try:
            while not self._stop:
                self._woken.clear()
                if not await self._outage.guard(self._round):
                    self._pause = min(self._settings.poll, 1.0)
                if self._pause > 0 and not self._stop:
                    await self._sleep(self._pause)
        finally:
            await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _sleep(self, seconds: float) -> None:
        """Wait until woken; not at once while a target is rate-limited."""
        least = min(seconds, LIMITED_WAIT) if self._closed or self._reserved else 0.0
        if least > 0:
            await self._stop.wait(least)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds - least):
                await self._woken.wait()

    async def _round(self) -> None:
        """Claim for the free places; set the pause until the next round."""
        free = self._settings.in_flight - len(self._under_way)
        self._pause = self._settings.poll
        if free <= 0:
            return  # the next delivery that ends wakes this loop
        if (served := self._channel.served()) == []:
            return
        share = self._settings.per_target
        until = time.monotonic() + self._settings.timeout * CALLS_PER_ATTEMPT
        claimed = await self._delivery_sender.claim(
            self._channel.name,
            free=free,
            share=share,
            busy=self._busy(share),
            reserved=list(self._reserved),
            after=self._after,
            sender=self._sender(),
            served=served,
        )
        for item in claimed:
            task = asyncio.create_task(self._send(item, until))
            self._under_way[task] = item.target
            task.add_done_callback(self._ended)
        if claimed or self._after:  # again, until nothing is due
            self._after = max(item.target for item in claimed) if len(claimed) == free else ""
            self._pause = 0.0
            return
        self._pause = self._wait_time(
            await self._delivery_sender.next_due(self._channel.name, served)
        )

    def _wait_time(self, due: float | None) -> float:
        """Return the seconds until the next claim, after an empty claim."""
        poll = self._settings.poll
        if due is None:
            return poll
        if due > 0:
            return min(poll, max(due, MIN_WAIT))
        if limits := [*self._closed.values(), *self._reserved.values()]:
            return min(poll, max(min(limits) - time.monotonic(), MIN_WAIT))
        return poll if self._under_way else min(poll, LOCKED_WAIT)

    def _busy(self, share: int) -> list[str]:
        """Return the targets at their share or rate limit."""
        now = time.monotonic()
        for limited in (self._closed, self._reserved):
            for target in [target for target, until in limited.items() if until <= now]:
                del limited[target]
        counts = collections.Counter(self._under_way.values())
        return [*self._closed, *(target for target, count in counts.items() if count >= share)]

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error(
                "a delivery failed and will be retried after its lease: %s: %s",
                type(error).__name__,
                error,
            )
        self._woken.set()

    async def _send(self, item: ClaimedDelivery, until: float) -> None:
        """Make an attempt; an unrecorded attempt is in doubt when its lease expires."""
        try:
            span = await self._begin_span(item)
            outcome = await self._try(item, until)
            name = _count(item, outcome)
            if span is not None:
                _end_span(span, name, outcome)
            if isinstance(outcome, Deferred) and outcome.limited:
                limited = self._closed if item.urgent else self._reserved
                limited[item.target] = time.monotonic() + outcome.seconds
            elif isinstance(outcome, Failure) and 0 < (outcome.retry_after or 0) <= HEAD_START:
                self._closed[item.target] = time.monotonic() + (outcome.retry_after or 0)
            await self._delivery_sender.record(item, outcome)
        except DatabaseUnreachable as error:
            _log.warning(
                "could not record delivery %s of %s: %s", item.seq, job_name(item.job), error
            )

    async def _begin_span(self, item: ClaimedDelivery) -> Span | None:
        """Begin the span of an attempt, while traces are recorded."""
        if (tracer := active()) is None:
            return None
        if (submission := await self._delivery_sender.submission(item.job)) is None:
            return None
        attributes: Attributes = {
            "draftsman.job": job_name(item.job),
            "draftsman.delivery": item.seq,
            "draftsman.delivery.kind": item.kind,
            "draftsman.delivery.channel": item.channel,
            "draftsman.delivery.target": item.target,
            "draftsman.delivery.attempt": item.attempts + 1,
        }
        span = tracer.start(f"deliver {item.channel}", Kind.CLIENT, attributes, parent=submission)
        span.activate()
        return span

    async def _try(self, item: ClaimedDelivery, until: float) -> DeliveryOutcome:
        limit = self._settings.timeout * CALLS_PER_ATTEMPT
        try:
            async with asyncio.timeout(limit):
                return await self._delivery_sender.send(item, self._channel, until)
        except TimeoutError:
            return Unconfirmed(f"no response within {limit:.0f} s")
        except DatabaseUnreachable:
            raise
        except Failure as error:
            return error
        except DraftsmanError as error:
            return Failure(str(error), declared="PERMANENT")
        except Exception as error:
            _log.exception("unexpected error in channel %s", self._channel.name)
            return Unconfirmed(f"{type(error).__name__}: {error}")


def _end_span(span: Span, name: str, outcome: DeliveryOutcome) -> None:
    span.set({"draftsman.outcome": name})
    if isinstance(outcome, Failure):
        span.fail(outcome.code or type(outcome).__name__, str(outcome))
    span.end()


def _count(item: ClaimedDelivery, outcome: DeliveryOutcome) -> str:
    """Count an attempt, and how late a message was sent; return the name of its outcome."""
    match outcome:
        case Receipt():
            late = (datetime.now(UTC) - item.due_at).total_seconds()
            LATENESS.add(str(item.channel), seconds=max(0.0, late))
            name = "sent"
        case Failure():
            name = "failed"
        case _:
            name = type(outcome).__name__.lower()
    SENT.add(str(item.channel), name)
    return name
