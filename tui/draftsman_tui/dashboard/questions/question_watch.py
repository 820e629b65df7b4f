"""Polling of a question while its dialog is open."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final

from draftsman.deliveries.question_text import resolution_text
from draftsman.errors import DraftsmanError
from draftsman.questions.question import Question, QuestionKind, QuestionStatus
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.questions.question_dialog import QuestionDialog

POLL_INTERVAL: Final = 1.0


async def ask_watched(screen: BaseScreen, dialog: QuestionDialog[Any]) -> str | None:
    """Return the result of a dialog; close it with a message if the question closes meanwhile."""
    watch = asyncio.create_task(_watch(screen, dialog))
    try:
        return await screen.ask(dialog)
    finally:
        watch.cancel()


async def votes(rt: Runtime, question: Question) -> list[str]:
    """Return the people who approved so far, for an approval with a quorum above 1."""
    if question.kind is not QuestionKind.APPROVAL or question.quorum < 2:
        return []
    _, answers = await rt.questions.of_job(question.job)
    return [
        answer.voter
        for answer in answers
        if answer.accepted and answer.question == question.ordinal
    ]


async def closing_text(rt: Runtime, question: Question) -> str:
    """Return how a question closed: `D-7/1 was answered by ben: red (in slack)`."""
    _, answers = await rt.questions.of_job(question.job)
    sources = [
        answer.source
        for answer in answers
        if answer.accepted and answer.question == question.ordinal
    ]
    where = f" (in {sources[-1]})" if sources else ""
    return f"{question.name} {resolution_text(question)}{where}"


async def _watch(screen: BaseScreen, dialog: QuestionDialog[Any]) -> None:
    question = dialog.question
    while not dialog.closed:
        await asyncio.sleep(POLL_INTERVAL)
        with contextlib.suppress(DraftsmanError):  # the banner shows a lost connection
            current = await screen.rt.questions.get(question.job, question.ordinal)
            if current.status is not QuestionStatus.OPEN:
                text = await closing_text(screen.rt, current)
                is_input = current.kind is QuestionKind.INPUT
                dialog.close(text, late=is_input and current.status is QuestionStatus.EXPIRED)
                if dialog.closed:
                    screen.show_message(text)
            else:
                dialog.update_question(current, await votes(screen.rt, current))
