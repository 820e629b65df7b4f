"""Actions on a question that take a short text, in its dialog or from a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from draftsman.actions import questions
from draftsman.actions.action import Action, Call, listed
from draftsman.errors import DraftsmanError
from draftsman.ids import question_name
from draftsman.people.actor import Actor
from draftsman.questions.question import Question
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.dialogs.simple_dialogs import PromptDialog
from draftsman_tui.terminal.results import results_text

MAX_EXAMPLES: Final = 8
"""People that the field for a delegation lists."""


class QuestionHolds:
    """The ways of a person to have a question wait, and the identical questions of other jobs.

    Each returns a message with the outcome.
    """

    def __init__(self, rt: Runtime, actor: Actor, rows: Sequence[questions.QuestionRow]) -> None:
        self._call = Call(rt, actor)
        self._rows = rows

    async def act(self, action: Action[questions.QuestionRow, ..., Any], text: str = "") -> str:
        """Act with the arguments of a text; raises DraftsmanError if the first is refused."""
        first, *others = self._rows
        results = [await action.typed(self._call, first, text)]
        refused = []
        for row in others:
            try:
                results.append(await action.typed(self._call, row, text))
            except DraftsmanError as error:
                refused.append(str(error))
        return "; ".join([results_text(results), *dict.fromkeys(refused)])

    def prompt(self, action: Action[questions.QuestionRow, ..., Any]) -> PromptDialog:
        """Return a dialog that asks for the arguments."""
        example = action.takes.example
        names = [question_name(*row) for row in self._rows]
        policy = self._call.rt.policy
        people = sorted(set(policy.people) - {policy.resolve(self._call.actor).voter})
        if action is questions.delegate and people:
            example = f"{', '.join(people[:MAX_EXAMPLES])}, or {people[0]} 4h"

        async def submit(text: str) -> str:
            return await self.act(action, text)

        return PromptDialog(action.takes.prompt.format(listed(names)), example, submit)


async def holds_of(rt: Runtime, actor: Actor, question: Question) -> QuestionHolds:
    """Return the holds of a question, with those of other jobs that an answer closes, too."""
    row = (question.job, question.ordinal)
    asked = await rt.questions.open_of([question.job])
    others = next((found.others for found in asked if found.ordinal == question.ordinal), [])
    identical = [
        (other.job, other.ordinal)
        for other in (await rt.questions.open_of(others) if others else ())
        if question.job in other.others and other.text == question.text
    ]
    return QuestionHolds(rt, actor, [row, *identical])
