"""What `up` shows where no dashboard can be: one line of numbers, and above it what is logged."""

from __future__ import annotations

import contextlib
import shutil
import sys
from typing import TYPE_CHECKING, Final

from draftsman.errors import DraftsmanError
from draftsman_tui.common.output import plain

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.services.jobs.read_model import Stats

CLEAR: Final = "\r\x1b[2K"


async def numbers(rt: Runtime, *, stopping: bool) -> str:
    """Return the line: how many of what, and what Ctrl-C does."""
    try:
        text = _counted(await rt.read_model.stats())
    except DraftsmanError as error:
        text = str(error)
    return f"stopping; Ctrl-C: at once · {text}" if stopping else f"{text} · Ctrl-C: stop"


def show(text: str) -> None:
    """Write it over the one that is there."""
    width = shutil.get_terminal_size((80, 24)).columns
    _write(f"{CLEAR}{plain(text)[: width - 1]}")


def print_above(text: str) -> None:
    """Print lines in its place; it comes back below them. With no text it just goes."""
    _write(CLEAR + plain(text))


def _counted(stats: Stats) -> str:
    jobs = stats.jobs
    waiting = jobs["waiting_for_input"] + jobs["waiting_for_approval"]
    queued = jobs["queued"] + jobs["resumed"] + jobs["claimed"]
    parts = [f"{stats.workers} worker{'' if stats.workers == 1 else 's'}"]
    parts += [f"{jobs['running']} running", f"{queued} queued"]
    parts += [f"{waiting} waiting: draftsman questions"] if waiting else ["nobody asked"]
    return " · ".join(parts)


def _write(text: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
