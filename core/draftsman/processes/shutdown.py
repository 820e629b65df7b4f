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

from draftsman.processes import early_signals
from draftsman.processes.early_signals import SIGNALS
from draftsman.processes.lifecycle import StopSignal

PARENT_POLL: Final = 0.5
"""Seconds between two checks for the supervisor."""
_log = logging.getLogger(__name__)


class ShutdownSignals:
    """Shutdown signals of a process with a graceful shutdown.

    Before `handled_by`, the first signal cancels the start; the second exits at once.
    """

    def __init__(self, cancel: Callable[[], object]) -> None:
        self.received: str | None = None
        """Name of the first signal, or another reason for the shutdown; None before it."""
        self.canceled = False
        """Whether the signal arrived while the process was starting."""
        self._cancel = cancel
        self._handle: Callable[[str], None] | None = None
        self._ending = False

    def receive(self, reason: str) -> None:
        """Handle a signal, or another reason for a shutdown."""
        again = self.received is not None
        self.received = self.received or reason
        if self._handle is not None:
            self._handle(reason)
        elif again:
            _log.warning("%s again: exiting now", reason)
            os._exit(1)
        elif not self._ending:
            _log.info("%s during startup: stopping", reason)
            self.canceled = True
            self._cancel()

    @contextlib.contextmanager
    def handled_by(self, handle: Callable[[str], None]) -> Iterator[None]:
        """Pass the name of each signal to `handle`; after the block the process is ending."""
        self._handle = handle
        try:
            if self.received is not None:  # the start was not canceled in time
                handle(self.received)
            yield
        finally:
            self._handle = None
            self._ending = True

    @contextlib.contextmanager
    def stopping(self, stop: StopSignal) -> Iterator[None]:
        """Set `stop` at the first signal, and exit at once at the second."""

        def shut_down(reason: str) -> None:
            if stop:
                _log.warning("%s again: exiting now", reason)
                os._exit(1)
            _log.info("%s: stopping", reason)
            stop.set()

        with self.handled_by(shut_down):
            yield

    @contextlib.contextmanager
    def left_to_kernel(self, number: signal.Signals) -> Iterator[None]:
        """Restore the default action of a signal for the block."""
        loop = asyncio.get_running_loop()
        if not loop.remove_signal_handler(number):  # signals are handled in another thread
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

    The death of the process `parent` counts as a signal. Only the main thread receives signals.
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
    """Block shutdown signals until the end of the block, so that none meets a missing handler.

    A draftsman process that is started in the block inherits the mask and unblocks the signals when
    it can handle them: `early_signals.hold`.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


@contextlib.contextmanager
def _in_loop(signals: ShutdownSignals) -> Iterator[None]:
    """Receive signals in the event loop, including a held signal.

    Ignored signals, as after `nohup`, stay ignored.
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
    while os.getppid() == parent:  # noqa: ASYNC110 - there is no event for the death of a parent
        await asyncio.sleep(PARENT_POLL)
    signals.receive("the supervisor is gone")
