"""Commands on schedules, templates and groups."""

from __future__ import annotations

from typing import Final

from draftsman.people.policy import Verb
from draftsman_tui.dashboard.command import GROUPS, SCHEDULES, TEMPLATES, DashboardCommand
from draftsman_tui.dashboard.schedules import actions as schedule_actions
from draftsman_tui.dashboard.schedules import actions as template_actions
from draftsman_tui.dashboard.workflows import actions as group_actions

SCHEDULE_COMMANDS: Final = (
    DashboardCommand(
        "pause-schedule",
        "Pause the schedule, or resume it.",
        schedule_actions.toggle_schedule,
        "p",
        "Schedules",
        SCHEDULES,
        Verb.SCHEDULES,
        takes="REASON",
        footer=SCHEDULES,
    ),
    DashboardCommand(
        "run-schedule",
        "Submit the job of the schedule now.",
        schedule_actions.run_schedule,
        "r",
        "Schedules",
        SCHEDULES,
        Verb.SUBMIT,
        footer=SCHEDULES,
    ),
    DashboardCommand(
        "history",
        "Show the occurrences of the schedule.",
        schedule_actions.show_history,
        "h",
        "Schedules",
        SCHEDULES,
        footer=SCHEDULES,
    ),
    DashboardCommand(
        "remove-schedule",
        "Remove the schedule.",
        schedule_actions.remove_schedule,
        "",
        "Schedules",
        SCHEDULES,
        Verb.SCHEDULES,
    ),
    DashboardCommand(
        "run-template",
        "Submit a job from the template.",
        template_actions.run_template,
        "r",
        "Templates",
        TEMPLATES,
        Verb.SUBMIT,
        footer=TEMPLATES,
    ),
    DashboardCommand(
        "remove-template",
        "Remove the template.",
        template_actions.remove_template,
        "",
        "Templates",
        TEMPLATES,
        Verb.TEMPLATES,
    ),
    DashboardCommand(
        "cancel-group",
        "Cancel the unfinished jobs of the group.",
        group_actions.cancel_group,
        "c",
        "Groups",
        GROUPS,
        Verb.CANCEL,
        takes="REASON",
        footer=GROUPS,
    ),
)
