"""Shutdown signals before a process has an event loop: SIGTERM, SIGINT and SIGHUP.

    hold ── imports, arguments ── release ── a command with Python's default handlers
                     └─────────── shutdown.shutdown_signals ── a process with a graceful shutdown

Before `hold`, a signal ends the process by its default action. This is the first module of every
process, so it imports nothing slow.
"""

from __future__ import annotations

import os
import signal
from typing import Any, Final

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""The signals that ask a process to stop."""
_before: dict[int, Any] = {}
_held: list[int] = []


def hold() -> None:
    """Hold the first signal from now on, and exit at once on the second.

    Ignored signals, as after `nohup`, stay ignored; blocked signals are unblocked.
    """
    for number in SIGNALS:
        if number not in _before and signal.getsignal(number) is not signal.SIG_IGN:
            _before[number] = signal.signal(number, _remember)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def release() -> None:
    """Restore the handlers that `hold` replaced, and raise the held signal for them."""
    held = list(_held)
    _held.clear()
    for number in list(_before):
        signal.signal(number, _before.pop(number))
    if held:
        signal.raise_signal(held[0])


def held() -> str | None:
    """Return the name of the held signal, or None."""
    return signal.Signals(_held[0]).name if _held else None


def _remember(number: int, _: object) -> None:
    if _held:
        os._exit(128 + number)
    _held.append(number)
