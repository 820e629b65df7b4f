"""Commands on the rows of a table, and on saved views."""

from __future__ import annotations

from typing import Final

from draftsman_tui.dashboard.command import GROUPED, JOBS, TABLES, DashboardCommand
from draftsman_tui.dashboard.frame import navigation
from draftsman_tui.dashboard.jobs import actions as browser_actions
from draftsman_tui.dashboard.jobs import actions as job_actions
from draftsman_tui.dashboard.tables import view_actions
from draftsman_tui.dashboard.tables.row_preview import PREVIEWED

TABLE_COMMANDS: Final = (
    DashboardCommand("copy", "Copy the ids of the selected rows.", job_actions.copy, "ctrl+y,Y"),
    DashboardCommand(
        "browse",
        "Open the web page of a row in the browser.",
        browser_actions.browse,
        "o",
        takes="ticket|pr|thread",
    ),
    DashboardCommand(
        "filter",
        "Filter the rows.",
        navigation.apply_filter,
        "slash",
        on=TABLES,
        takes="FILTER",
        footer=True,
    ),
    DashboardCommand(
        "clear", "Clear the marks or the filter.", navigation.clear, "escape", on=TABLES
    ),
    DashboardCommand(
        "only-job",
        "Show only a job and its tree among jobs, questions, runs and events; again: all.",
        view_actions.only_job,
        "O",
        on=JOBS,
        takes="D-142",
    ),
    DashboardCommand(
        "sort",
        "Sort by a column, by its number or name; again: in reverse.",
        navigation.sort,
        "s",
        on=TABLES,
        takes="COLUMN",
    ),
    DashboardCommand(
        "preview",
        "Hide or show the preview of the job, on large screens.",
        navigation.preview,
        "p",
        on=PREVIEWED,
    ),
    DashboardCommand(
        "group-by",
        "Group the rows by the next value, or by the named one; enter folds a group.",
        navigation.group_by,
        "b",
        on=GROUPED,
        takes="attention|repository|person|question|status|none",
    ),
    DashboardCommand(
        "fold", "Fold all groups, or unfold them.", navigation.fold, "minus", on=GROUPED
    ),
    DashboardCommand("reverse", "Reverse the sort order.", navigation.reverse, "S", on=TABLES),
    DashboardCommand(
        "mark", "Mark a row for the next command.", navigation.mark, "space", on=TABLES
    ),
    DashboardCommand(
        "mark-range",
        "Mark from the last mark to here.",
        navigation.mark_range,
        "ctrl+@,V",
        on=TABLES,
    ),
    DashboardCommand(
        "columns",
        "Choose the columns and their order.",
        view_actions.columns,
        "C",
        on=TABLES,
        takes="COLUMNS",
    ),
    DashboardCommand(
        "views",
        "List and open the saved views.",
        view_actions.views,
        "v",
        "Saved views",
        takes="VIEW",
    ),
    DashboardCommand(
        "save",
        "Save the table's filter, order and columns as a view.",
        view_actions.save,
        group="Saved views",
        on=TABLES,
        takes="NAME",
    ),
    DashboardCommand(
        "unsave",
        "Delete a saved view, after confirmation.",
        view_actions.unsave,
        group="Saved views",
        takes="VIEW",
    ),
    DashboardCommand("refresh", "Reload the data.", navigation.refresh, "ctrl+r"),
)
