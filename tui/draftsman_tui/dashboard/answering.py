"""Answering questions: choices by number, free text, gates with the diff in view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.domain.answer import Response
from draftsman.domain.question import Question, QuestionKind
from draftsman.errors import Refused, UsageError
from draftsman_tui.cli.answers import handed_in, outcome, response
from draftsman_tui.cli.questions import who
from draftsman_tui.cli.times import clock, duration, left
from draftsman_tui.dashboard.screens.answer import Answer
from draftsman_tui.dashboard.screens.decide import Decide
from draftsman_tui.dashboard.screens.prompt import Prompt
from draftsman_tui.dashboard.verbs import patch

if TYPE_CHECKING:
    from draftsman_tui.dashboard.screens.desk import Desk


async def answer(desk: Desk, text: str) -> None:
    """Answer the question, by what is given or in a dialog; a gate is decided."""
    asked = await _question(desk)
    if asked.kind is QuestionKind.APPROVAL:
        await _decide(desk, asked, None, text)
        return
    error = ""
    while True:
        said = text or await desk.ask(Answer(asked, await who(desk.rt, asked), error))
        if said is None:
            return
        try:
            await _hand_in(desk, asked, response("tui", text=said))
        except UsageError as problem:  # not a choice: nothing was kept, so ask again
            text, error = "", str(problem)
        else:
            return


async def approve(desk: Desk, text: str) -> None:
    """Approve, after a look."""
    await _decide(desk, await _gate(desk), True, text)


async def deny(desk: Desk, text: str) -> None:
    """Deny, after a look."""
    await _decide(desk, await _gate(desk), False, text)


async def extend(desk: Desk, text: str) -> None:
    """Give the question more time."""
    asked = await _question(desk)
    given = text or await desk.ask(
        Prompt(f"How much more time for {asked.name}?", "30m, 2h, 1d, or never")
    )
    if not given:
        return
    seconds = None if given.strip() == "never" else duration(given)
    until = await desk.rt.questions.extend(asked.job, asked.ordinal, seconds, desk.actor)
    when = f"expires {left(until)}, at {clock(until)}" if until else "never expires"
    desk.say(f"{asked.name} {when}")


async def _decide(desk: Desk, asked: Question, decision: bool | None, reason: str) -> None:
    changes = await patch(desk.rt, asked.job)
    dialog = Decide(asked, await who(desk.rt, asked), changes, decision, reason)
    decided = await desk.ask(dialog)
    if decided is not None:
        approved, because = decided
        given = response("tui", decision=approved, reason=because or None)
        await _hand_in(desk, asked, given)


async def _hand_in(desk: Desk, asked: Question, given: Response) -> None:
    verdict = await handed_in(desk.rt, asked.job, asked.ordinal, given, desk.actor)
    desk.say(f"{verdict.name} {outcome(verdict)}")


async def _gate(desk: Desk) -> Question:
    asked = await _question(desk)
    if asked.kind is not QuestionKind.APPROVAL:
        raise Refused(f"{asked.name} is a question, not a gate; answer it")
    return asked


async def _question(desk: Desk) -> Question:
    """Return the question of the row: its own, or the open one of its job."""
    if desk.question is not None:
        return await desk.rt.questions.get(*desk.question)
    number = desk.jobs()[0]
    found = await desk.rt.questions.open(number)
    if not found:
        raise Refused(f"D-{number} has no open question; w says what it waits for")
    return found[0]
