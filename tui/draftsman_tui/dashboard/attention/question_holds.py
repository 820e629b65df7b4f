"""Acknowledgment, snooze and delegation of a question, in a dialog or from a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.actions import questions
from draftsman.actions.action import Call
from draftsman.attention.attention import MAX_DELAY
from draftsman.durations import parse_duration
from draftsman_tui.dashboard.dialogs.simple_dialogs import PromptDialog
from draftsman_tui.terminal.results import result_text

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman.questions.question import Question
    from draftsman.runtime import Runtime

MAX_EXAMPLES: Final = 8
"""People that the field for a delegation lists."""


class QuestionHolds:
    """The ways of a person to have a question wait; each returns a message with the outcome."""

    def __init__(self, rt: Runtime, actor: Actor, question: Question) -> None:
        self._call = Call(rt, actor)
        self._name = question.name
        self._row = (question.job, question.ordinal)

    async def acknowledge(self, text: str = "") -> str:
        """Tell others that the user works on the answer, for `text` or an hour."""
        return result_text(await questions.acknowledge.typed(self._call, self._row, text))

    async def snooze(self, text: str) -> str:
        """Pause the user's own reminders for `text`."""
        seconds = parse_duration(text, most=MAX_DELAY)
        return result_text(await questions.snooze(self._call, self._row, seconds))

    async def delegate(self, text: str) -> str:
        """Ask another person to answer: `bob`, `bob 4h`."""
        return result_text(await questions.delegate.typed(self._call, self._row, text))

    def snooze_prompt(self) -> PromptDialog:
        """Return a dialog that asks for the duration of a snooze."""
        return PromptDialog(f"Snooze {self._name} for how long?", "30m, 2h, 1d", self.snooze)

    def delegation_prompt(self) -> PromptDialog:
        """Return a dialog that asks for the person of a delegation."""
        policy = self._call.rt.policy
        people = sorted(set(policy.people) - {policy.resolve(self._call.actor).voter})
        example = f"{', '.join(people[:MAX_EXAMPLES])}, or {people[0]} 4h" if people else "bob 4h"
        return PromptDialog(f"Delegate {self._name} to whom?", example, self.delegate)
