"""Interactive prompts on stderr."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator, Sequence

import click

from draftsman.errors import Refused
from draftsman.formats.invisible import one_line
from draftsman.processes.early_signals import SIGNALS


def prompt(question: str, *, choices: Sequence[str] = (), default: str | None = None) -> str:
    """Prompt for text or a choice; raises click.Abort on Ctrl-C or end of input.

    An empty line is the default, which may be empty; without one it asks again.
    """
    kind = click.Choice(choices) if choices else str
    with _interruptible():
        shows_default = bool(default)
        return str(
            click.prompt(
                one_line(question),
                type=kind,
                default=default,
                show_default=shows_default,
                err=True,
            )
        )


def is_confirmed(question: str, *, default: bool = False) -> bool:
    """Return whether the answer is yes; raises click.Abort on Ctrl-C."""
    with _interruptible():
        return click.confirm(one_line(question), default=default, err=True)


def confirm(question: str, *, default: bool = False) -> None:
    """Ask for confirmation; raises Refused on no, click.Abort on Ctrl-C."""
    if not is_confirmed(question, default=default):
        raise Refused("canceled; nothing was changed")


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C or a shutdown signal abort the prompt, without stopping the event loop.

    The event loop's own handlers run only when the loop does, and the loop is blocked by the
    prompt; the wakeup descriptor is unset so that the loop does not see the signal afterwards.
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
