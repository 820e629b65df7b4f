"""Acknowledgment, snooze and delegation of a question, in a dialog or from a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.attention.attention import ACKNOWLEDGED, MAX_DELAY, parse_delay
from draftsman.durations import parse_duration
from draftsman.errors import UsageError
from draftsman.formats.times import clock
from draftsman_tui.dashboard.dialogs.simple_dialogs import PromptDialog

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman.questions.question import Question
    from draftsman.runtime import Runtime

MAX_EXAMPLES: Final = 8
"""People that the field for a delegation lists."""


class QuestionHolds:
    """The ways of a person to have a question wait; each returns a message with the outcome."""

    def __init__(self, rt: Runtime, actor: Actor, question: Question) -> None:
        self._rt = rt
        self._actor = actor
        self._question = question

    async def acknowledge(self, text: str = "") -> str:
        """Tell others that the user works on the answer, for `text` or an hour."""
        question = self._question
        seconds = parse_delay(text, ACKNOWLEDGED)
        held = await self._rt.acknowledgments.acknowledge(
            question.job, question.ordinal, self._actor, seconds
        )
        until = clock(held.expires_at)
        return f"{question.name} acknowledged until {until}; others wait until then"

    async def snooze(self, text: str) -> str:
        """Pause the user's own reminders for `text`."""
        question = self._question
        seconds = parse_duration(text, most=MAX_DELAY)
        until = await self._rt.acknowledgments.snooze(
            question.job, question.ordinal, self._actor, seconds
        )
        return f"{question.name}: no reminders for you until {clock(until)}"

    async def delegate(self, text: str) -> str:
        """Ask another person to answer: `bob`, `bob 4h`."""
        question = self._question
        person, _, duration = text.strip().removeprefix("to ").partition(" ")
        if not person:
            raise UsageError("a person is required")
        seconds = parse_delay(duration, ACKNOWLEDGED)
        until = await self._rt.acknowledgments.delegate(
            question.job, question.ordinal, self._actor, person, seconds
        )
        return f"{question.name} delegated to {person}; others wait until {clock(until)}"

    def snooze_prompt(self) -> PromptDialog:
        """Return a dialog that asks for the duration of a snooze."""
        prompt = f"Snooze {self._question.name} for how long?"
        return PromptDialog(prompt, "30m, 2h, 1d", self.snooze)

    def delegation_prompt(self) -> PromptDialog:
        """Return a dialog that asks for the person of a delegation."""
        policy = self._rt.policy
        people = sorted(set(policy.people) - {policy.resolve(self._actor).voter})
        example = f"{', '.join(people[:MAX_EXAMPLES])}, or {people[0]} 4h" if people else "bob 4h"
        return PromptDialog(f"Delegate {self._question.name} to whom?", example, self.delegate)
