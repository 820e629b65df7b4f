"""Attention commands: acknowledge, snooze and delegate a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.actions import questions as actions
from draftsman_tui.dashboard.attention.question_holds import QuestionHolds
from draftsman_tui.dashboard.command import QUESTION_VIEWS, CommandGroup, dashboard_command
from draftsman_tui.dashboard.questions.actions import question_of

if TYPE_CHECKING:
    from draftsman_tui.dashboard.frame.base_screen import BaseScreen


@dashboard_command(
    "ack", CommandGroup.QUESTIONS, does=actions.acknowledge, keys="i", on=QUESTION_VIEWS
)
async def acknowledge(screen: BaseScreen, text: str) -> None:
    """Acknowledge a question: you work on the answer, and others wait.

    `text` is a duration; the default is an hour.
    """
    screen.show_message(await (await _holds(screen)).acknowledge(text))


@dashboard_command(
    "snooze", CommandGroup.QUESTIONS, does=actions.snooze, keys="I", on=QUESTION_VIEWS
)
async def snooze(screen: BaseScreen, text: str) -> None:
    """Pause your own reminders of a question.

    `text` is a duration, which is asked for without one.
    """
    holds = await _holds(screen)
    message = await holds.snooze(text) if text else await screen.ask(holds.snooze_prompt())
    if message:
        screen.show_message(message)


@dashboard_command(
    "delegate", CommandGroup.QUESTIONS, does=actions.delegate, keys="D", on=QUESTION_VIEWS
)
async def delegate(screen: BaseScreen, text: str) -> None:
    """Ask another person to answer a question.

    `text` is the person, and the duration.
    """
    holds = await _holds(screen)
    message = await holds.delegate(text) if text else await screen.ask(holds.delegation_prompt())
    if message:
        screen.show_message(message)


async def _holds(screen: BaseScreen) -> QuestionHolds:
    return QuestionHolds(screen.rt, screen.actor, await question_of(screen))
