"""Asking the person at the terminal, on stderr, in the middle of a command."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator, Sequence

import click

from draftsman.early_signals import SIGNALS
from draftsman.errors import Refused
from draftsman_tui.common.output import one_line


def prompt(question: str, *, choices: Sequence[str] = (), default: str | None = None) -> str:
    """Ask for text, or for one of some words. Raises click.Abort on Ctrl-C and at the end."""
    kind = click.Choice(choices) if choices else str
    with _interruptible():
        return str(click.prompt(one_line(question), type=kind, default=default, err=True))


def confirm(question: str) -> None:
    """Ask yes or no; raises Refused on a no, click.Abort on Ctrl-C."""
    with _interruptible():
        if not click.confirm(one_line(question), err=True):
            raise Refused("nothing was done")


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end the question, and nothing but the question; so does any shutdown signal.

    The event loop's own handlers would wait for the loop, which waits for us; and the loop must not
    hear afterwards of an interrupt that was the answer.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    wakeup = signal.set_wakeup_fd(-1)
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    handled = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in handled:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
