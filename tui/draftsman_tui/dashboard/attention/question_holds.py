"""Actions on a question that take a short text, in its dialog or from a table."""

from __future__ import annotations

from typing import Any, Final

from draftsman.actions import questions
from draftsman.actions.action import Action, Call
from draftsman.people.actor import Actor
from draftsman.questions.question import Question
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.dialogs.simple_dialogs import PromptDialog
from draftsman_tui.terminal.results import result_text

MAX_EXAMPLES: Final = 8
"""People that the field for a delegation lists."""


class QuestionHolds:
    """The ways of a person to have a question wait; each returns a message with the outcome."""

    def __init__(self, rt: Runtime, actor: Actor, question: Question) -> None:
        self._call = Call(rt, actor)
        self._name = question.name
        self._row = (question.job, question.ordinal)

    async def act(self, action: Action[questions.QuestionRow, ..., Any], text: str = "") -> str:
        """Act with the arguments of a text; raises DraftsmanError."""
        return result_text(await action.typed(self._call, self._row, text))

    def prompt(self, action: Action[questions.QuestionRow, ..., Any]) -> PromptDialog:
        """Return a dialog that asks for the arguments."""
        example = action.takes.example
        policy = self._call.rt.policy
        people = sorted(set(policy.people) - {policy.resolve(self._call.actor).voter})
        if action is questions.delegate and people:
            example = f"{', '.join(people[:MAX_EXAMPLES])}, or {people[0]} 4h"

        async def submit(text: str) -> str:
            return await self.act(action, text)

        return PromptDialog(action.takes.prompt.format(self._name), example, submit)
