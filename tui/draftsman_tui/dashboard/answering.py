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
from draftsman_tui.dashboard.verbs import patch, why

if TYPE_CHECKING:
    from draftsman_tui.dashboard.screens.main import MainScreen


async def answer(screen: MainScreen, text: str) -> None:
    """Answer the question, by what is given or in a dialog; a gate is decided."""
    asked = await _question(screen)
    if asked.kind is QuestionKind.APPROVAL:
        await _decide(screen, asked, None, text)
        return
    error = ""
    while True:
        said = text or await screen.ask(Answer(asked, await who(screen.rt, asked), error))
        if said is None:
            return
        try:
            await _hand_in(screen, asked, response("tui", text=said))
        except UsageError as problem:  # not a choice: nothing was kept, so ask again
            text, error = "", str(problem)
        else:
            return


async def open_row(screen: MainScreen, text: str) -> None:
    """Open what the row is about: a question to be answered, else why its job is where it is."""
    row = screen.table.row
    if row is not None and screen.resource.question(row) is not None:
        await answer(screen, text)
    else:
        await why(screen, text)


async def approve(screen: MainScreen, text: str) -> None:
    """Approve, after a look."""
    await _decide(screen, await _gate(screen), True, text)


async def deny(screen: MainScreen, text: str) -> None:
    """Deny, after a look."""
    await _decide(screen, await _gate(screen), False, text)


async def extend(screen: MainScreen, text: str) -> None:
    """Give the question more time."""
    asked = await _question(screen)
    given = text or await screen.ask(
        Prompt(f"How much more time for {asked.name}?", "30m, 2h, 1d, or never")
    )
    if not given:
        return
    seconds = None if given.strip() == "never" else duration(given)
    until = await screen.rt.questions.extend(asked.job, asked.ordinal, seconds, screen.actor)
    when = f"expires {left(until)}, at {clock(until)}" if until else "never expires"
    screen.say(f"{asked.name} {when}")


async def _decide(screen: MainScreen, asked: Question, decision: bool | None, reason: str) -> None:
    changes = await patch(screen.rt, asked.job)
    dialog = Decide(asked, await who(screen.rt, asked), changes, decision, reason)
    decided = await screen.ask(dialog)
    if decided is not None:
        approved, because = decided
        given = response("tui", decision=approved, reason=because or None)
        await _hand_in(screen, asked, given)


async def _hand_in(screen: MainScreen, asked: Question, given: Response) -> None:
    verdict = await handed_in(screen.rt, asked.job, asked.ordinal, given, screen.actor)
    screen.say(f"{verdict.name} {outcome(verdict)}")


async def _gate(screen: MainScreen) -> Question:
    asked = await _question(screen)
    if asked.kind is not QuestionKind.APPROVAL:
        raise Refused(f"{asked.name} is a question, not a gate; answer it")
    return asked


async def _question(screen: MainScreen) -> Question:
    """Return the question of the row: its own, or the open one of its job."""
    row = screen.table.row
    named = None if row is None else screen.resource.question(row)
    if named is not None:
        return await screen.rt.questions.get(*named)
    number = screen.jobs()[0]
    found = await screen.rt.questions.open(number)
    if not found:
        raise Refused(f"D-{number} has no open question; w says what it waits for")
    return found[0]
