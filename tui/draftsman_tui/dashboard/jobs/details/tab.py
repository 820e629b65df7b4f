"""Tabs of the job screen: their declaration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from draftsman_tui.dashboard.jobs.details.row_layout import Item
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot

Render = Callable[[JobSnapshot, int, datetime], Sequence[Item]]
"""Renders a tab for a width in cells, at a time of the database's clock."""


@dataclass(frozen=True, slots=True)
class JobTab:
    """A tab. `selectable`: a cursor selects an item; `follows`: new items keep its end in view."""

    name: str
    help: str
    items: Render
    number_key: str = ""
    """One of `NUMBER_KEYS`, which shows the tab."""
    short: str = ""
    """Label on narrow screens, if it differs from the name."""
    selectable: bool = False
    follows: bool = False
    ticks: bool = False
    """Whether it is redrawn every second."""
    has_ids: bool = False
    """Whether its items have ids of their own, which commands take instead of the job's."""
    has_chart: bool = False
    """Whether it has a chart of the phases."""
    count: Callable[[JobSnapshot], int] = lambda snapshot: 1
    """Number of items; a tab without items is dimmed."""
    shows_count: bool = False
    """Whether the tab bar shows the number."""
    of_request: bool = False
    """Whether only requests of agents have it."""
    needs_attention: Callable[[JobSnapshot], bool] = lambda snapshot: False
    """Whether it is highlighted."""


DECLARED: Final[list[JobTab]] = []
"""Tabs of the modules that are imported."""


def declare_tab(tab: JobTab) -> None:
    """Declare a tab of the job screen."""
    DECLARED.append(tab)
