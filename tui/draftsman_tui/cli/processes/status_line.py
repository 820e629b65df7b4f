"""Status line of `up` on a terminal without the dashboard, with the log above it."""

from __future__ import annotations

import contextlib
import shutil
import sys
from typing import TYPE_CHECKING, Final

from draftsman.errors import DraftsmanError
from draftsman_tui.terminal.output import plain

if TYPE_CHECKING:
    from draftsman.jobs.read_models import Stats
    from draftsman.runtime import Runtime

CLEAR: Final = "\r\x1b[2K"


async def numbers(rt: Runtime | None, *, stopping: bool) -> str:
    """Return the status line: the effect of Ctrl-C, and counts if connected."""
    parts = ["stopping; Ctrl-C: stop now"] if stopping else []
    if rt is not None:
        try:
            parts.append(_counts(await rt.read_model.stats()))
        except DraftsmanError as error:
            parts.append(str(error))
    return " · ".join(parts if stopping else [*parts, "Ctrl-C: stop"])


def show(text: str) -> None:
    """Replace the status line."""
    width = shutil.get_terminal_size((80, 24)).columns
    _write(f"{CLEAR}{plain(text)[: width - 1]}")


def print_above(text: str) -> None:
    """Print lines above the status line; without text, erase the status line."""
    _write(CLEAR + plain(text))


def _counts(stats: Stats) -> str:
    jobs = stats.jobs
    waiting = jobs["waiting_for_input"] + jobs["waiting_for_approval"]
    queued = jobs["queued"] + jobs["resumed"] + jobs["claimed"]
    parts = [f"{stats.workers} worker{'' if stats.workers == 1 else 's'}"]
    parts += [f"{jobs['running']} running", f"{queued} queued"]
    parts += [f"{waiting} waiting: draftsman questions"] if waiting else ["no open questions"]
    return " · ".join(parts)


def _write(text: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
