"""Shutdown signals of a process with an event loop, from its start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final

from draftsman import early_signals
from draftsman.early_signals import SIGNALS

PARENT_POLL: Final = 0.5
"""Seconds between two looks whether the supervisor is still there."""
_log = logging.getLogger(__name__)


class ShutdownSignals:
    """The signals of one process that stops in order.

    Until `handled_by` takes over, the first one cancels what starts; a second one exits at once.
    """

    def __init__(self, cancel: Callable[[], object]) -> None:
        self.received: str | None = None
        """The name of the first signal, or what else counts as one; None before."""
        self.canceled = False
        """Whether it came while the process was starting."""
        self._cancel = cancel
        self._handle: Callable[[str], None] | None = None
        self._ending = False

    def receive(self, why: str) -> None:
        """Handle one signal, or what counts as one."""
        again = self.received is not None
        self.received = self.received or why
        if self._handle is not None:
            self._handle(why)
        elif again:
            _log.warning("%s again: exiting now", why)
            os._exit(1)
        elif not self._ending:
            _log.info("%s: stopping while starting", why)
            self.canceled = True
            self._cancel()

    @contextlib.contextmanager
    def handled_by(self, handle: Callable[[str], None]) -> Iterator[None]:
        """Pass each signal to `handle`, by its name; after the block the process is ending."""
        self._handle = handle
        try:
            if self.received is not None:  # its cancellation was lost on the way
                handle(self.received)
            yield
        finally:
            self._handle, self._ending = None, True

    @contextlib.contextmanager
    def left_to_kernel(self, number: signal.Signals) -> Iterator[None]:
        """Let one signal end the process at once, as it does without a handler."""
        loop = asyncio.get_running_loop()
        if not loop.remove_signal_handler(number):  # none is handled in this thread
            yield
            return
        signal.signal(number, signal.SIG_DFL)
        try:
            yield
        finally:
            loop.add_signal_handler(number, self.receive, number.name)


@contextlib.asynccontextmanager
async def shutdown_signals(parent: int | None = None) -> AsyncIterator[ShutdownSignals]:
    """Let a signal cancel this block, which then ends without an error.

    That the process `parent` is no longer the one that this one belongs to counts as a signal.
    Outside of the main thread, which alone gets signals, nothing else does.
    """
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in a task
    signals = ShutdownSignals(task.cancel)
    watch = asyncio.create_task(_watch(parent, signals)) if parent else None
    main = threading.current_thread() is threading.main_thread()
    with _in_loop(signals) if main else contextlib.nullcontext():
        try:
            yield signals
        except asyncio.CancelledError:
            if not signals.canceled or task.uncancel() > 0:
                raise
        finally:
            if watch is not None:
                watch.cancel()


@contextlib.contextmanager
def blocked() -> Iterator[None]:
    """Block shutdown signals: they come through at the end of the block.

    No signal falls between two handlers then. A draftsman that is started in the block inherits
    this, and unblocks them when it can handle them: `early_signals.hold`.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


@contextlib.contextmanager
def _in_loop(signals: ShutdownSignals) -> Iterator[None]:
    """Receive signals in the event loop, the one that was held included.

    Signals that are ignored, as after `nohup`, stay ignored.
    """
    loop = asyncio.get_running_loop()
    with blocked():
        handlers = {number: signal.getsignal(number) for number in SIGNALS}
        before = {number: old for number, old in handlers.items() if old is not signal.SIG_IGN}
        for number in before:
            loop.add_signal_handler(number, signals.receive, number.name)
    if (name := early_signals.held()) is not None:
        signals.receive(name)
    try:
        yield
    finally:
        with blocked():
            for number, old in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, old)


async def _watch(parent: int, signals: ShutdownSignals) -> None:
    while os.getppid() == parent:  # noqa: ASYNC110 - no event tells of a parent's death
        await asyncio.sleep(PARENT_POLL)
    signals.receive("the supervisor is gone")
