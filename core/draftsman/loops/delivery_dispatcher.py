"""The dispatcher: sends what is due, each channel in a lane of its own.

A lane holds a bounded number of deliveries, and of each target only some: who is slow or hangs is
waited for by nobody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from draftsman.domain.messages.delivery import (
    ClaimedDelivery,
    Deferred,
    DeliveryOutcome,
    Unconfirmed,
)
from draftsman.errors import DatabaseUnreachable, DraftsmanError, Failure
from draftsman.loops.lifecycle import OutageGuard, StopSignal
from draftsman.ports import Channel
from draftsman.services.deliveries.delivery_sender import DeliverySender
from draftsman.settings import NotificationSettings
from draftsman.store.delivery_claims import HEAD_START

CALLS_PER_ATTEMPT: Final = 3
"""Calls that one try may take: to look for it, for the copy that it rewrites, and to send it."""
MIN_WAIT: Final = 0.01
LOCKED_WAIT: Final = 0.1
"""Seconds to wait for what is due and in the hands of somebody who may let go of it."""
RECLAIM_INTERVAL: Final = 1.0
"""Seconds between two looks for deliveries of processes that ended."""
LOCK_TIMEOUT: Final = 2.0
"""Seconds at most that the first claim waits for the session lock."""
_log = logging.getLogger(__name__)


class DeliveryDispatcher:
    """The lanes of one process; `run` returns when it was stopped and nothing is on its way.

    `sender` returns the number of the session lock that the process holds, None while it has none.
    """

    def __init__(
        self,
        deliver: DeliverySender,
        channels: Sequence[Channel],
        settings: NotificationSettings,
        sender: Callable[[], int | None] | None = None,
    ) -> None:
        self.stop = StopSignal()
        self._woken = asyncio.Event()
        self._deliver = deliver
        self._channels = channels
        self._sender = sender
        self._lanes = {
            str(channel.name): ChannelSender(
                deliver, channel, settings, self.stop, sender or (lambda: None)
            )
            for channel in channels
        }

    def wake(self, channel: str = "") -> None:
        """Look at once: for one channel, or for all."""
        self._woken.set()
        for name, lane in self._lanes.items():
            if channel in ("", name):
                lane.wake()

    async def run(self) -> None:
        """Send until stopped, then finish what is on its way."""
        beside = [asyncio.create_task(self._wake_to_stop())]
        try:
            if self._sender is not None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOCK_TIMEOUT):
                        await self._woken.wait()
                beside.append(asyncio.create_task(self._reclaim(self._sender)))
            await asyncio.gather(*(lane.run() for lane in self._lanes.values()))
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            for channel in self._channels:
                await channel.close()

    async def _wake_to_stop(self) -> None:
        await self.stop.wait(float("inf"))
        self.wake()

    async def _reclaim(self, sender: Callable[[], int | None]) -> None:
        """Take over, now and then, from processes that ended; only while our own session lives."""
        names = [channel.name for channel in self._channels]
        while not self.stop:
            if sender() is not None:
                try:
                    if count := await self._deliver.reclaim(names):
                        _log.info("%s deliveries of a process that ended are taken over", count)
                        self.wake()
                except DraftsmanError as error:
                    _log.debug("deliveries are not taken over: %s", error)
            await self.stop.wait(RECLAIM_INTERVAL)


class ChannelSender:
    """One channel's deliveries."""

    def __init__(
        self,
        deliver: DeliverySender,
        channel: Channel,
        settings: NotificationSettings,
        stop: StopSignal,
        sender: Callable[[], int | None],
    ) -> None:
        self._deliver = deliver
        self._sender = sender
        self._channel = channel
        self._settings = settings
        self._stop = stop
        self._woken = asyncio.Event()
        self._under_way: dict[asyncio.Task[None], str] = {}
        self._outage = OutageGuard(f"the dispatcher of {channel.name}")
        self._closed: dict[str, float] = {}
        """Targets whose limit is reached, and until when by the monotonic clock."""
        self._reserved: dict[str, float] = {}
        """Targets with nothing left but what is reserved for urgent deliveries, and until when."""
        self._after = ""
        self._pause = 0.0

    def wake(self) -> None:
        """Look at once."""
        self._woken.set()

    async def run(self) -> None:
        """Claim and send until stopped; then wait for what is on its way."""
        try:
            while not self._stop:
                self._woken.clear()
                if not await self._outage.guard(self._round):
                    self._pause = min(self._settings.poll, 1.0)
                if self._pause > 0 and not self._stop:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(self._pause):
                            await self._woken.wait()
        finally:
            await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _round(self) -> None:
        """Take what there is room for; decide how long to wait for more."""
        free = self._settings.in_flight - len(self._under_way)
        self._pause = self._settings.poll
        if free <= 0:
            return  # the next one that ends wakes us
        share = self._settings.per_target
        until = time.monotonic() + self._settings.timeout * CALLS_PER_ATTEMPT
        taken = await self._deliver.claim(
            self._channel.name,
            free=free,
            share=share,
            busy=self._busy(share),
            reserved=list(self._reserved),
            after=self._after,
            sender=self._sender(),
        )
        for item in taken:
            task = asyncio.create_task(self._send(item, until))
            self._under_way[task] = item.target
            task.add_done_callback(self._ended)
        if taken or self._after:  # round again, until nothing is left to take
            self._after = max(item.target for item in taken) if len(taken) == free else ""
            self._pause = 0.0
            return
        self._pause = self._until(await self._deliver.next_due(self._channel.name))

    def _until(self, due: float | None) -> float:
        """Return the seconds to wait, when nothing can be taken, for what is due then."""
        poll = self._settings.poll
        if due is None:
            return poll
        if due > 0:
            return min(poll, max(due, MIN_WAIT))
        if waits := [*self._closed.values(), *self._reserved.values()]:
            return min(poll, max(min(waits) - time.monotonic(), MIN_WAIT))
        return poll if self._under_way else min(poll, LOCKED_WAIT)

    def _busy(self, share: int) -> list[str]:
        """Return the targets that have enough on their way, or may not be asked yet."""
        now = time.monotonic()
        for limited in (self._closed, self._reserved):
            for target in [target for target, until in limited.items() if until <= now]:
                del limited[target]
        counts = Counter(self._under_way.values())
        return [*self._closed, *(target for target, count in counts.items() if count >= share)]

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a delivery was left to its lease: %s: %s", type(error).__name__, error)
        self._woken.set()

    async def _send(self, item: ClaimedDelivery, until: float) -> None:
        """Try once. What is not written down is in doubt when its lease is over."""
        try:
            outcome = await self._try(item, until)
            if isinstance(outcome, Deferred) and outcome.limited:
                limited = self._closed if item.urgent else self._reserved
                limited[item.target] = time.monotonic() + outcome.seconds
            elif isinstance(outcome, Failure) and 0 < (outcome.retry_after or 0) <= HEAD_START:
                self._closed[item.target] = time.monotonic() + (outcome.retry_after or 0)
            await self._deliver.record(item, outcome)
        except DatabaseUnreachable as error:
            _log.warning("delivery %s of D-%s was not recorded: %s", item.seq, item.job, error)

    async def _try(self, item: ClaimedDelivery, until: float) -> DeliveryOutcome:
        limit = self._settings.timeout * CALLS_PER_ATTEMPT
        try:
            async with asyncio.timeout(limit):
                return await self._deliver.send(item, self._channel, until)
        except TimeoutError:
            return Unconfirmed(f"nothing within {limit:.0f} s")
        except DatabaseUnreachable:
            raise
        except Failure as error:
            return error
        except DraftsmanError as error:
            return Failure(str(error), declared="PERMANENT")
        except Exception as error:
            _log.exception("the channel %s broke", self._channel.name)
            return Unconfirmed(f"{type(error).__name__}: {error}")
