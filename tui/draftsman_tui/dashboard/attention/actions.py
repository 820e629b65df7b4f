"""Commands on a question that take a short text: acknowledge, snooze, delegate and extend it."""

from __future__ import annotations

from typing import Any

from draftsman.actions import questions
from draftsman.actions.action import Action
from draftsman_tui.dashboard.attention.question_holds import holds_of
from draftsman_tui.dashboard.command import QUESTION_VIEWS, CommandGroup, dashboard_command
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.questions.actions import question_of


def question_command(action: Action[questions.QuestionRow, ..., Any], *, keys: str) -> None:
    """Declare the command of an action on the selected question."""

    async def run(screen: BaseScreen, text: str) -> None:
        holds = await holds_of(screen.rt, screen.actor, await question_of(screen))
        is_asked = bool(action.takes.prompt) and not text
        acted = screen.ask(holds.prompt(action)) if is_asked else holds.act(action, text)
        if message := await acted:
            screen.show_message(message)

    dashboard_command(
        action.name, CommandGroup.QUESTIONS, does=action, keys=keys, on=QUESTION_VIEWS
    )(run)


question_command(questions.acknowledge, keys="i")
question_command(questions.snooze, keys="I")
question_command(questions.delegate, keys="D")
question_command(questions.extend, keys="e")
