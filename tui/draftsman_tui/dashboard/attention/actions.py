"""Attention commands: acknowledge, snooze and delegate a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman_tui.dashboard.attention.question_holds import QuestionHolds
from draftsman_tui.dashboard.questions.actions import question_of

if TYPE_CHECKING:
    from draftsman_tui.dashboard.frame.base_screen import BaseScreen


async def acknowledge(screen: BaseScreen, text: str) -> None:
    """Tell others that the user works on the answer, for `text` or an hour."""
    screen.show_message(await (await _holds(screen)).acknowledge(text))


async def snooze(screen: BaseScreen, text: str) -> None:
    """Pause the user's own reminders of the question, for `text` or a duration that is asked."""
    holds = await _holds(screen)
    message = await holds.snooze(text) if text else await screen.ask(holds.snooze_prompt())
    if message:
        screen.show_message(message)


async def delegate(screen: BaseScreen, text: str) -> None:
    """Ask the person in `text`, or one that is asked for, to answer."""
    holds = await _holds(screen)
    message = await holds.delegate(text) if text else await screen.ask(holds.delegation_prompt())
    if message:
        screen.show_message(message)


async def _holds(screen: BaseScreen) -> QuestionHolds:
    return QuestionHolds(screen.rt, screen.actor, await question_of(screen))
