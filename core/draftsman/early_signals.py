"""SIGTERM, SIGINT and SIGHUP before a process has an event loop.

    hold ── imports, arguments ── release ── a command that just ends, as Python's own handlers do
                     └─────────── shutdown.shutdown_signals ── a process that stops in order

A signal that comes before `hold` ends the process by that signal, when nothing has begun yet.
Nothing slow is imported here: this is the first module of every process.
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
    """Remember the first signal from now on, and exit at once on a second one.

    Signals that are ignored, as after `nohup`, stay ignored; those that are blocked come through.
    """
    for number in SIGNALS:
        if number not in _before and signal.getsignal(number) is not signal.SIG_IGN:
            _before[number] = signal.signal(number, _remember)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def release() -> None:
    """Restore the handlers that `hold` replaced; a signal that came meanwhile goes to its own."""
    held, _held[:] = list(_held), []
    for number in list(_before):
        signal.signal(number, _before.pop(number))
    if held:
        signal.raise_signal(held[0])


def held() -> str | None:
    """Return the name of the signal that came since `hold`, None when none came."""
    return signal.Signals(_held[0]).name if _held else None


def _remember(number: int, _: object) -> None:
    if _held:
        os._exit(128 + number)
    _held.append(number)
