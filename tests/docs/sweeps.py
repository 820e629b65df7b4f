"""Writes the table of docs/operations.md and the help of `draftsman sweep` from the sweeps.

python -m tests.docs.sweeps
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from draftsman.durations import format_duration
from draftsman.jobs.runs.sweep import Sweep
from draftsman_tui.cli.processes import workers
from tests.docs.pages import DOCS, filled
from tests.support.declared_sweeps import SWEEPS

PAGE: Final = DOCS / "operations.md"
HELP: Final = workers.SWEEPS


def page(text: str) -> str:
    """Return the page with a current table."""
    return filled(text, _table())


def help_rows() -> str:
    """Return the rows of the help."""
    return "".join(f"{sweep.name}\t{sweep.description}\n" for sweep in SWEEPS)


def _table() -> Iterator[str]:
    yield "| Sweep | Change | Runs |"
    yield "|---|---|---|"
    for sweep in SWEEPS:
        yield f"| `{sweep.name}` | {sweep.description} | {_runs(sweep)} |"


def _runs(sweep: Sweep) -> str:
    if sweep.due is not None:
        return "when due"
    if sweep.follows_deaths:
        return "at once after a death on the leader's host"
    if sweep.max_interval < math.inf:
        return f"at least every {format_duration(sweep.max_interval)}"
    if sweep.min_interval > 0:
        return f"at most every {format_duration(sweep.min_interval)}"
    return "at the interval"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    HELP.write_text(help_rows(), encoding="utf-8")
