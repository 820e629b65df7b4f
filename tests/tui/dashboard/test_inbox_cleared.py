"""An inbox with questions of all kinds, cleared by keys alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from draftsman.people.actor import Actor
from draftsman.questions.question import QuestionKind, QuestionStatus
from draftsman.questions.question_spec import Choice, QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from tests.support.permissions import SHOP
from tests.tui.dashboard.pilot import open_dashboard

MAX_KEYS = 27
"""Keys for all questions, without the letters of free texts."""


@dataclass(frozen=True, slots=True)
class Task:
    """A question, the keys of a person who answers it, and the stored answer."""

    text: str
    keys: str
    answer: str
    typed: str = ""
    fields: Any = None
    jobs: int = 1

    def spec(self, nth: int) -> QuestionSpec:
        fields = {"expires_in": 600.0 * (nth + 1), **(self.fields or {})}
        return QuestionSpec(key="it", text=self.text, **fields)


def _approval(action: dict[str, Any]) -> dict[str, Any]:
    return {"kind": QuestionKind.APPROVAL, "action": action, "on_deny": "continue"}


PERMISSION = {"choices": ("allow once", "deny", "allow for this job"), "freeform": True}
ONE_OF_TWELVE = {"choices": tuple(f"region-{nth}" for nth in range(1, 13))}
LABELS = {"choices": (Choice(value="item", label="Each item"), Choice(value="sum", label="Sum"))}
TASKS = (
    Task("Continue?", "y", "yes", fields={"choices": ("no", "yes")}),
    Task("Push the notes?", "y", "approved", fields=_approval({"push": "notes"})),
    Task("Drop the table?", "n", "denied", fields=_approval({"drop": "orders"})),
    Task("Allow this command?\n$ npm test", "3", "allow for this job", fields=PERMISSION),
    Task("Allow this command?\n$ rm -rf .git", "2", "deny", fields=PERMISSION),
    Task("Which region?", "11 enter", "region-11", fields=ONE_OF_TWELVE),
    Task("How is it rounded?", "2", "sum", fields=LABELS),
    Task("How many?", "enter", "7", "7", {"freeform": True}),
    Task("Which name?", "tab enter", "ribbon", "ribbon", {"choices": ("a", "b"), "freeform": True}),
    Task("Which license?", "1", "MIT", fields={"choices": ("MIT", "GPL")}, jobs=3),
)


@pytest.mark.slow(
    fast="tests/tui/dashboard/test_review.py::test_review_opens_each_question_and_ends_at_zero"
)
async def test_twenty_questions_are_cleared_in_the_order_of_their_deadlines(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    tasks = [*TASKS, *TASKS]
    jobs: dict[int, list[int]] = {}
    for nth in reversed(range(len(tasks))):
        repo = f"{SHOP}{nth}"
        asked = [await make.asked(tasks[nth].spec(nth), repo=repo) for _ in range(tasks[nth].jobs)]
        jobs[nth] = [work.number for work in asked]
    held = await make.asked(GATE)
    await rt.acknowledgments.delegate(held.number, 1, owner, "dave", 3600)
    keys = 1
    async with open_dashboard(rt, owner, view="inbox", size=(80, 24)) as seen:
        await seen.see("20 questions for you")
        await seen.press("A")
        for nth, task in enumerate(tasks):
            await seen.see(f"{nth + 1} of 20 for you · D-", task.text.splitlines()[-1])
            assert "esc: end review" in seen.text, "hints are not broken"
            pressed = task.keys.replace("11", "1 1").split()
            *before, last = pressed
            await seen.press(*before)
            if task.typed:
                await seen.type(task.typed)
            await seen.press(last)
            keys += len(pressed)
        await seen.wait_for_toast("No more questions: 20 answered")
        await seen.rows(f"{held.name}/1")
        await seen.until(lambda: "questions for you" not in seen.text)
    assert keys <= MAX_KEYS
    for nth, task in enumerate(tasks):
        for number in jobs[nth]:
            question = await rt.questions.get(number, 1)
            resolution = question.resolution or {}
            given = [resolution.get(name) for name in ("value", "text", "outcome")]
            assert next(filter(None, given)) == task.answer, (task, given)
            _, answers = await rt.questions.of_job(number)
            assert [answer.accepted for answer in answers] == [True]
    assert (await rt.questions.get(held.number, 1)).status is QuestionStatus.OPEN
