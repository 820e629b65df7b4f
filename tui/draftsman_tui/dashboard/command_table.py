"""Table of the dashboard's commands.

Key bindings (remapped by command name), the footer, the command line and its completion, the
palette and the help are all generated from it.
"""

from __future__ import annotations

from typing import Final

from draftsman_tui.dashboard.administration.commands import ADMIN_COMMANDS
from draftsman_tui.dashboard.command import JOB, CommandSet, DashboardCommand
from draftsman_tui.dashboard.frame import navigation
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.jobs.commands import JOB_COMMANDS
from draftsman_tui.dashboard.jobs.details.commands import (
    JOB_SCREEN_COMMANDS,
    SEARCH_COMMANDS,
)
from draftsman_tui.dashboard.jobs.details.job_tabs import JOB_TABS
from draftsman_tui.dashboard.jobs.details.screen import JobScreen
from draftsman_tui.dashboard.schedules.commands import SCHEDULE_COMMANDS
from draftsman_tui.dashboard.tables.commands import TABLE_COMMANDS
from draftsman_tui.dashboard.views import VIEWS


def _view(nth: int, name: str) -> DashboardCommand:
    async def run(screen: BaseScreen, text: str) -> None:
        await navigation.view(screen, name, text)

    key = str(nth % 10) if nth <= 10 else ""
    return DashboardCommand(name, VIEWS[name].help, run, key, "Tables", takes="FILTER")


def _tab(nth: int, name: str) -> DashboardCommand:
    async def run(screen: JobScreen, text: str) -> None:
        screen.show_tab(name)

    return DashboardCommand(f"job-{name}", JOB_TABS[name].help, run, str(nth % 10), "Job", JOB)


COMMANDS: Final = CommandSet(
    (
        *(_tab(nth, name) for nth, name in enumerate(JOB_TABS, 1)),
        *SEARCH_COMMANDS,
        *(_view(nth, name) for nth, name in enumerate(VIEWS, 1)),
        *JOB_COMMANDS,
        *JOB_SCREEN_COMMANDS,
        *TABLE_COMMANDS,
        *SCHEDULE_COMMANDS,
        *ADMIN_COMMANDS,
    )
)
