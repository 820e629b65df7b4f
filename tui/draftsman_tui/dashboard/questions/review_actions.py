"""Review: open questions one after another, until none is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from draftsman.questions.question import OpenQuestion, QuestionStatus
from draftsman_tui.dashboard.command import CommandGroup, dashboard_command
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.questions.actions import open_dialog
from draftsman_tui.dashboard.tables.screen import MainScreen

MAX_READ: Final = 1000
"""Open questions that are read at a time."""


@dashboard_command("review", CommandGroup.QUESTIONS, keys="A", writes=True, footer={"inbox"})
async def review(screen: BaseScreen, text: str) -> None:
    """Open the questions for you one after another; or the marked or filtered of the inbox.

    Questions that are asked meanwhile follow, unless rows are marked.
    """
    screen.session.is_reviewing = True
    try:
        await _review(screen)
    finally:
        screen.session.is_reviewing = False
        screen.pin_preview(None)


async def _review(screen: BaseScreen) -> None:
    chosen = screen.reviewed_questions if isinstance(screen, MainScreen) else None
    seen: set[str] = set()
    answered = skipped = 0
    while waiting := await _waiting(screen, chosen, seen):
        if not screen.session.is_reviewing:
            return
        question = waiting[0]
        seen.add(question.name)
        current = await screen.rt.questions.get(question.job, question.ordinal)
        if current.status is not QuestionStatus.OPEN:
            continue
        whose = "for you" if chosen is None else "selected"
        position = f"{answered + skipped + 1} of {answered + skipped + len(waiting)} {whose}"
        dialog = await open_dialog(screen, current, position=position)
        answered += dialog.answered
        skipped += not dialog.answered
        screen.reload()
        if dialog.undone:
            seen.difference_update(dialog.undone, [question.name])
            answered -= len(dialog.undone)
            skipped -= not dialog.answered
        elif not (dialog.answered or dialog.skipped):
            return
    skipped_text = f"; {skipped} skipped" if skipped else ""
    screen.show_message(
        f"No more questions: {answered} answered{skipped_text}" if seen else "No questions"
    )


async def _waiting(
    screen: BaseScreen, chosen: Sequence[OpenQuestion] | None, seen: set[str]
) -> list[OpenQuestion]:
    """Return the questions of the review that were not opened yet."""
    questions = chosen
    if questions is None:
        actor = screen.actor
        questions = [
            question
            for question in await screen.rt.questions.open(limit=MAX_READ, fold_for=actor)
            if question.for_viewer
        ]
    return [question for question in questions if question.name not in seen]
