"""Hangups of the terminal while the dashboard is shown."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from draftsman_tui.terminal import stdio

if TYPE_CHECKING:
    from draftsman.processes.shutdown import ShutdownSignals


@contextlib.contextmanager
def ending(signals: ShutdownSignals) -> Iterator[None]:
    """Let a hangup of the terminal end the process, since Textual blocks on a lost terminal.

    A terminal that does not control the process hangs up without SIGHUP. Textual would then read
    the end of its input again and again.
    """
    with signals.left_to_kernel(signal.SIGHUP):
        if not stdio.is_terminal(sys.stdin):  # the dashboard of a browser
            yield
            return
        stopped, stop = os.pipe()
        watch = threading.Thread(target=_watch, args=(sys.stdin.fileno(), stopped), daemon=True)
        watch.start()
        try:
            with _restored_job_control():
                yield
        finally:
            os.close(stop)
            watch.join()
            os.close(stopped)


def has_happened() -> bool:
    """Return whether the terminal of standard input is gone."""
    waiting = select.poll()
    waiting.register(sys.stdin.fileno(), 0)  # hangups only
    return bool(waiting.poll(0))


@contextlib.contextmanager
def _restored_job_control() -> Iterator[None]:
    """Restore the handlers that Textual replaces and keeps, after the block.

    A hangup continues the process. The handler of a dashboard that has ended would then show it
    again, and its thread would read the end of the input again and again.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGTSTP, signal.SIGCONT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch(terminal: int, stopped: int) -> None:
    """Wait for the end of the block or of the terminal; end the process with its terminal."""
    waiting = select.poll()
    waiting.register(terminal, 0)  # hangups only
    waiting.register(stopped, select.POLLIN)
    if any(ready == terminal for ready, _ in waiting.poll()):
        os.kill(os.getpid(), signal.SIGHUP)
        os._exit(128 + signal.SIGHUP)  # SIGHUP is ignored, as after `nohup`
