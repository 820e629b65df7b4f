"""Commands that open a job, and those of the job screen."""

from __future__ import annotations

from typing import Final

from draftsman_tui.dashboard.command import JOB, JOBS, OPENING, DashboardCommand
from draftsman_tui.dashboard.frame import navigation
from draftsman_tui.dashboard.jobs.details import tab_actions

SEARCH_COMMANDS: Final = (
    DashboardCommand(
        "next-match",
        "Go to the next match of a search in the log or the diff.",
        tab_actions.next_match,
        "n",
        "Job",
        JOB,
        footer=True,
    ),
    DashboardCommand(
        "previous-match",
        "Go to the previous match of a search in the log or the diff.",
        tab_actions.previous_match,
        "N",
        "Job",
        JOB,
        footer=True,
    ),
)
"""During a search of the log, their keys are not those of other commands."""
JOB_SCREEN_COMMANDS: Final = (
    DashboardCommand(
        "open",
        "Open the job or item under the cursor, or the named job.",
        navigation.open_row,
        "enter",
        on=JOBS | OPENING,
        takes="D-142",
    ),
    DashboardCommand("job", "Open a job.", navigation.job, group="Jobs", takes="D-142"),
    DashboardCommand(
        "log",
        "Follow the log of a job or a run.",
        tab_actions.log,
        "l",
        "Job",
        JOBS,
        takes="RUN|all",
    ),
    DashboardCommand(
        "previous-tab",
        "Go to the previous tab.",
        tab_actions.previous_tab,
        "left,h",
        "Job",
        JOB,
    ),
    DashboardCommand("next-tab", "Go to the next tab.", tab_actions.next_tab, "right", "Job", JOB),
    DashboardCommand(
        "follow",
        "Keep the end of the log or the timeline in view.",
        tab_actions.follow,
        "f",
        "Job",
        JOB,
    ),
    DashboardCommand(
        "find",
        "Search the tab; n and N go through the matches of a log.",
        tab_actions.find,
        "slash",
        "Job",
        JOB,
        takes="TEXT",
    ),
    DashboardCommand(
        "previous-job",
        "Go to the previous job in the table.",
        tab_actions.previous_job,
        "left_square_bracket,K",
        "Job",
        JOB,
    ),
    DashboardCommand(
        "next-job",
        "Go to the next job in the table.",
        tab_actions.next_job,
        "right_square_bracket,J",
        "Job",
        JOB,
    ),
    DashboardCommand(
        "back", "Go back to the table.", tab_actions.back, "escape", "Job", JOB, footer=True
    ),
)
