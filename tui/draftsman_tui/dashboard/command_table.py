"""Table of the dashboard's commands: those of tabs and tables, and those of the modules `actions`.

Key bindings (remapped by command name), the footer, the command line and its completion, the
palette and the help are all generated from it.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from draftsman_tui.dashboard import modules
from draftsman_tui.dashboard.command import (
    DECLARED,
    JOB,
    CommandGroup,
    CommandSet,
    DashboardCommand,
)
from draftsman_tui.dashboard.frame import actions
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.jobs.details.job_tabs import JOB_TABS
from draftsman_tui.dashboard.jobs.details.screen import JobScreen
from draftsman_tui.dashboard.jobs.details.tab import JobTab
from draftsman_tui.dashboard.views import VIEWS


def _view(name: str) -> DashboardCommand:
    async def run(screen: BaseScreen, text: str) -> None:
        await actions.view(screen, name, text)

    return DashboardCommand(
        name=name,
        help=VIEWS[name].help,
        run=run,
        group=CommandGroup.TABLES,
        keys=VIEWS[name].number_key,
        takes="FILTER",
    )


def _tab(tab: JobTab) -> DashboardCommand:
    async def run(screen: JobScreen, text: str) -> None:
        screen.show_tab(tab.name)

    return DashboardCommand(
        name=f"job-{tab.name}",
        help=tab.help,
        run=run,
        group=CommandGroup.JOB,
        keys=tab.number_key,
        on=JOB,
    )


modules.import_all("actions")
COMMANDS: Final = CommandSet(
    (
        *map(_tab, JOB_TABS.values()),
        *(_view(name) for name in VIEWS),
        *sorted(DECLARED, key=attrgetter("name")),
    )
)
"""The commands of each group are in the order of their keys or names."""
