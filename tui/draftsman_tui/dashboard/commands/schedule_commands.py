"""Commands on templates."""

from __future__ import annotations

from typing import Final

from draftsman.domain.people.policy import Verb
from draftsman_tui.dashboard.actions import template_actions
from draftsman_tui.dashboard.command import TEMPLATES, DashboardCommand

SCHEDULE_COMMANDS: Final = (
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
)
