"""Attention commands: acknowledge, snooze and delegate a question."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from draftsman.domain.durations import parse_duration
from draftsman.errors import UsageError
from draftsman.services.attention.acknowledgments import MAX_DELAY
from draftsman_tui.common.times import clock
from draftsman_tui.dashboard.actions.question_actions import question_of
from draftsman_tui.dashboard.dialogs.prompt_dialog import PromptDialog

if TYPE_CHECKING:
    from draftsman_tui.dashboard.screens.base import BaseScreen

ACKNOWLEDGED: Final = "1h"
"""Duration of an acknowledgment without one."""
MAX_EXAMPLES: Final = 8
"""People that the field for a delegation lists."""


async def acknowledge(screen: BaseScreen, text: str) -> None:
    """Tell others that the user works on the answer, for `text` or an hour."""
    question = await question_of(screen)
    seconds = parse_duration(text or ACKNOWLEDGED, most=MAX_DELAY)
    held = await screen.rt.acknowledgments.acknowledge(
        question.job, question.ordinal, screen.actor, seconds
    )
    until = clock(held.expires_at)
    screen.show_message(f"{question.name} acknowledged until {until}; others wait until then")


async def snooze(screen: BaseScreen, text: str) -> None:
    """Pause the user's own reminders of the question."""
    question = await question_of(screen)

    async def pause(duration: str) -> str:
        seconds = parse_duration(duration, most=MAX_DELAY)
        until = await screen.rt.acknowledgments.snooze(
            question.job, question.ordinal, screen.actor, seconds
        )
        return f"{question.name}: no reminders for you until {clock(until)}"

    await _prompt(screen, text, f"Snooze {question.name} for how long?", "30m, 2h, 1d", pause)


async def delegate(screen: BaseScreen, text: str) -> None:
    """Ask another person to answer, for a duration or an hour."""
    question = await question_of(screen)

    async def hand_over(typed: str) -> str:
        person, _, duration = typed.strip().removeprefix("to ").partition(" ")
        if not person:
            raise UsageError("a person is required")
        seconds = parse_duration(duration or ACKNOWLEDGED, most=MAX_DELAY)
        until = await screen.rt.acknowledgments.delegate(
            question.job, question.ordinal, screen.actor, person, seconds
        )
        return f"{question.name} delegated to {person}; others wait until {clock(until)}"

    voter = screen.rt.policy.resolve(screen.actor).voter
    others = sorted(set(screen.rt.policy.people) - {voter})
    example = f"{', '.join(others[:MAX_EXAMPLES])}, or {others[0]} 4h" if others else "bob 4h"
    await _prompt(screen, text, f"Delegate {question.name} to whom?", example, hand_over)


async def _prompt(
    screen: BaseScreen, text: str, prompt: str, hint: str, submit: Callable[[str], Awaitable[str]]
) -> None:
    """Submit the text of the command line, else ask for it."""
    message = await submit(text) if text else await screen.ask(PromptDialog(prompt, hint, submit))
    if message:
        screen.show_message(message)
