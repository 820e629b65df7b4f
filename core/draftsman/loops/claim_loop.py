"""Slots that claim jobs and run them, in one loop.

One statement a turn: what is done goes in, what is claimed comes out. Batches form by themselves,
because everything that ends during a turn goes in with the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from draftsman.domain.job import Status
from draftsman.domain.run import ClaimedJob, Lease
from draftsman.errors import DatabaseUnreachable, DraftsmanError, Failure
from draftsman.handlers.registry import Handler
from draftsman.loops.execution import Execution, WorkerServices
from draftsman.loops.lifecycle import OutageGuard, StopSignal

SKIP_TIMEOUT: Final = 60.0
"""Seconds after which a type that another worker knows is looked at again."""
CLEANUP_TIMEOUT: Final = 30.0
"""Seconds in which processes of a run that were killed must be gone, and its clone removed."""
_log = logging.getLogger(__name__)


class ClaimLoop:
    """Claims for its slots until it is stopped; `run` returns when everything is settled.

    A run is known by its fencing token: the same job may come back while an older run of it, which
    lost it, is still ending here. `look` is awaited before the lane claims; it has no statement
    under way then. `more` is called when all its free slots were filled: more may wait.
    """

    def __init__(
        self,
        bench: WorkerServices,
        handlers: Mapping[str, Handler],
        slots: int,
        stop: StopSignal,
        look: Callable[[], Awaitable[None]],
        more: Callable[[], None],
    ) -> None:
        self.running: dict[int, Execution] = {}
        self.exchange_lock = asyncio.Lock()
        """Held while claims may be on their way here."""
        self.may_have_lost_claims = False
        """Whether an outage may have swallowed claims, since somebody looked for them."""
        self._slots = slots
        self._stop = stop
        self._look = look
        self._more = more
        self._bench = bench
        self._claim = bench.claim
        self._settings = bench.settings.worker
        self._handlers = handlers
        self._types = sorted(handlers)
        self._ahead: list[ClaimedJob] = []
        self._done: dict[int, Execution] = {}
        self._skip: dict[str, float] = {}
        self._wake = asyncio.Event()
        self._outage = OutageGuard("the worker")
        self._revival = OutageGuard("starting the database again")

    def wake(self) -> None:
        """Look at once instead of at the next poll."""
        self._wake.set()

    @property
    def free(self) -> int:
        """How many slots are free."""
        return self._slots - len(self.running)

    def leases(self) -> list[Lease]:
        """Return what runs here, or ran and is not settled yet."""
        return [execution.job.lease for execution in (*self.running.values(), *self._done.values())]

    def ahead(self) -> list[Lease]:
        """Return what was claimed and waits for a slot."""
        return [job.lease for job in self._ahead]

    def lose_run(self, token: int) -> None:
        """End a run that lost its job, and forget its result."""
        self._done.pop(token, None)
        if token in self.running:
            self.running[token].cancel("lost")

    async def run(self) -> None:
        """Claim and run until `stop`; then drain, abort what is left, and hand it back."""
        while not self._stop:
            if await self._outage.guard(self._turn):
                await self._pause()
            else:
                self.may_have_lost_claims = True
                if self._bench.revive is not None:
                    await self._revival.guard(self._bench.revive)
                await self._stop.wait(self._settings.poll)
        await self._drain()

    async def _turn(self) -> None:
        """Settle and claim until nothing moves."""
        await self._look()
        while not self._stop:
            await self._start_ahead()
            free = self.free
            ahead = max(0, self._settings.prefetch - len(self._ahead))
            if not (self._done or free or ahead):
                return
            got = await self._exchange(free, ahead)
            if len(got) < max(1, free):
                return
            self._more()

    async def _exchange(self, free: int, ahead: int) -> list[ClaimedJob]:
        """Settle all that is done and claim; a result that the database refuses fails its run."""
        done = list(self._done.values())
        try:
            async with self.exchange_lock:
                got = await self._send(done, free, ahead)
                self._begin_all(got)
        except DatabaseUnreachable:
            raise
        except DraftsmanError as error:
            if not done:
                raise
            _log.warning("a batch was refused, settling one by one: %s", error)
            await self._settle_singly(done)
            return []
        await self._pass_on_unknown(got)
        return got

    async def _send(self, done: list[Execution], free: int, ahead: int) -> list[ClaimedJob]:
        now = time.monotonic()
        self._skip = {t: at for t, at in self._skip.items() if now - at < SKIP_TIMEOUT}
        return await self._claim.exchange(
            [(execution.job.lease, execution.result or {}) for execution in done],
            types=self._types,
            skip=list(self._skip),
            free=free,
            ahead=ahead,
        )

    async def _settle_singly(self, done: list[Execution]) -> None:
        for execution in done:
            try:
                self._begin_all(await self._send([execution], 0, 0))
            except DatabaseUnreachable:
                raise
            except DraftsmanError as error:
                failure = Failure(f"the result was refused: {error}", declared="INVALID_OUTPUT")
                await self._bench.settle.failure(execution.job, failure)
                self._done.pop(execution.job.token, None)

    def _begin_all(self, got: list[ClaimedJob]) -> None:
        """Begin what runs before anything is awaited: an outage must not forget it."""
        for job in got:
            if job.status is Status.RUNNING:
                self._begin(job)
            elif job.status is not Status.CLAIMED:
                self._done.pop(job.token, None)
            elif job.type in self._handlers:
                self._ahead.append(job)

    async def _pass_on_unknown(self, got: list[ClaimedJob]) -> None:
        for job in got:
            if job.status is Status.CLAIMED and job.type not in self._handlers:
                await self._pass_on(job)

    async def _start_ahead(self) -> None:
        """Give free slots to what was claimed ahead; what was canceled meanwhile is gone."""
        first = self._ahead[: max(0, self.free)]
        if first:
            started = await self._claim.start([job.lease for job in first])
            self._ahead = self._ahead[len(first) :]
            for job in started:
                self._begin(job)

    async def _pass_on(self, job: ClaimedJob) -> None:
        """Return a job of an unknown type to whoever knows it; fail it when nobody does."""
        able, known = await self._claim.known_types(job.type, self._settings.lease)
        if able:
            self._skip[job.type] = time.monotonic()
            await self._claim.release_claims([job.lease], "this worker does not know the type")
            return
        for started in await self._claim.start([job.lease]):
            names = ", ".join(known) or "none"
            text = f"no worker knows the type {job.type!r}; known types: {names}"
            await self._bench.settle.failure(started, Failure(text, code="unknown_type"))

    def _begin(self, job: ClaimedJob) -> None:
        execution = Execution(self._bench, job, self._handlers[job.type])
        self.running[job.token] = execution
        execution.start(self._ended)

    def _ended(self, execution: Execution) -> None:
        self.running.pop(execution.job.token, None)
        if execution.result is not None:
            self._done[execution.job.token] = execution
        self._wake.set()

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.poll):
                await self._wake.wait()
        self._wake.clear()

    async def _drain(self) -> None:
        """Stop claiming, wait for running jobs, then abort the others at their checkpoints."""
        if self._ahead:
            leases = [job.lease for job in self._ahead]
            self._ahead = []
            for _ in range(2):  # one connection may be gone
                if await self._outage.guard(lambda: self._claim.release_claims(leases, "shutdown")):
                    break
        if self.running:
            _log.info("draining %s runs, at most %.0f s", len(self.running), self._settings.drain)
        await self._finish(self._settings.drain)
        for execution in list(self.running.values()):
            execution.cancel("shutdown")
        await self._finish(self._settings.abort)
        for execution in list(self.running.values()):
            execution.kill()
        await self._finish(self._settings.abort)
        if any(execution.ending for execution in self.running.values()):
            await self._finish(CLEANUP_TIMEOUT)
        for execution in list(self.running.values()):
            await execution.abandon()

    async def _finish(self, seconds: float) -> None:
        """Settle results as they come, until nothing is left or the time is over."""
        end = time.monotonic() + seconds
        while self.running or self._done:
            await self._outage.guard(self._settle_done)
            left = end - time.monotonic()
            if left <= 0 or not (self.running or self._done):
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, self._settings.poll)):
                    await self._wake.wait()
            self._wake.clear()

    async def _settle_done(self) -> None:
        if self._done:
            await self._exchange(0, 0)
