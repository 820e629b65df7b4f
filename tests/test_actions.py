"""Every declared action is reachable where it says, and refuses the rows that it does not fit."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any, Final

import pytest

import draftsman.actions
from draftsman.actions.action import ACTIONS, UNDO, About, Action, Call, Surface
from draftsman.errors import Refused
from draftsman.ids import job_name
from draftsman.jobs.job import AGENT_TYPE, TERMINAL, Status
from draftsman.runtime import Runtime
from draftsman_bots.conversation.commands import DECLARED
from draftsman_bots.slack.controls import CONTROLS, DIALOGS, FORMS
from draftsman_bots.web import job_pages, question_pages, start_pages
from draftsman_testing.factories import Factory
from draftsman_tui.cli.app import ACTIONS_OF
from draftsman_tui.dashboard.command_table import COMMANDS
from tests.support.cases import cases
from tests.support.commands import PROGRAMS, leaves

for module in pkgutil.iter_modules(draftsman.actions.__path__, f"{draftsman.actions.__name__}."):
    import_module(module.name)

REACHED: Final[dict[Surface, set[Action[Any, ..., Any]]]] = {
    Surface.COMMANDS: {action for _, command in leaves() for action in ACTIONS_OF[command]},
    Surface.DASHBOARD: {action for command in COMMANDS for action in command.actions},
    Surface.CHAT: {
        action for command in DECLARED if (action := command.action or command.ends_in) is not None
    },
    Surface.CONTROLS: {*CONTROLS.values(), *DIALOGS.values(), *FORMS.values()},
    Surface.PAGES: {
        *question_pages.ACTIONS.values(),
        *job_pages.ACTIONS.values(),
        *start_pages.ACTIONS,
    },
    Surface.PROGRAMS: {
        action
        for name, command in leaves()
        if name.partition(" ")[0] in PROGRAMS
        for action in ACTIONS_OF[command]
    },
}
ARGUMENTS: Final[dict[str, tuple[Any, ...]]] = {
    "job.pause": ("noon",),
    "job.tell": ("use the v2 API",),
    "job.move": ("top",),
    "job.priority": (5,),
    "job.revise": (None,),
    "schedule.pause": ("noon",),
}
"""The required arguments of actions on jobs and schedules."""
each_action = pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS)


@cases("surface", Surface)
def test_an_action_is_reached_on_the_surfaces_that_it_names(surface: Surface) -> None:
    named = {action.key for action in ACTIONS.values() if surface in action.surfaces}
    assert {action.key for action in REACHED[surface]} == named


@each_action
def test_an_action_is_described(action: Action[Any, ..., Any]) -> None:
    assert action.help.endswith(".")
    assert action.help[0].isupper()
    assert action.label
    assert action.surfaces
    if action.destroys or action.guarded:
        assert "{}" in action.question
        assert action.consequence
    if action.undo:
        assert action.undo == UNDO or f"{action.about}.{action.undo}" in ACTIONS


async def test_an_action_on_a_job_refuses_the_statuses_that_it_does_not_fit(
    make: Factory, rt: Runtime
) -> None:
    limited = [item for item in ACTIONS.values() if item.about is About.JOB and item.fits]
    assert limited
    call = Call(rt, make.owner)
    for status in Status:
        number = await make.job_in(status, type=AGENT_TYPE)
        for action in limited:
            if action.fits is None or status in action.fits.statuses:
                continue
            with pytest.raises(Refused) as refused:
                await action.run(call, number, *ARGUMENTS.get(action.key, ()))
            expected = action.fits.refusal(job_name(number), status)
            assert refused.value.reason == expected.reason, action.key
        assert (await rt.read_model.version(number)).status is status
    assert {status for status in Status if status not in TERMINAL}
