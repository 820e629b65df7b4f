"""Shutdown signals of this process."""

from __future__ import annotations

import asyncio
import os
import signal

from draftsman.processes.shutdown import shutdown_signals


async def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stopped = asyncio.Event()
    try:
        async with shutdown_signals() as signals:
            with signals.handled_by(lambda _: stopped.set()):
                os.kill(os.getpid(), signal.SIGHUP)
                os.kill(os.getpid(), signal.SIGTERM)
                await asyncio.wait_for(stopped.wait(), 10)
        assert signals.received == "SIGTERM"
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
