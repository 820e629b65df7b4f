"""A question is looked at while its dialog is open: others may be first, or give it more time."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

from draftsman.domain.messages.plain_text import resolution_text
from draftsman.domain.question import Question, QuestionKind, QuestionStatus
from draftsman.errors import DraftsmanError

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman_tui.dashboard.dialogs.question_dialog import QuestionDialog
    from draftsman_tui.dashboard.screens.base import BaseScreen

EVERY: Final = 1.0
"""Seconds between two looks at one row."""


async def ask_watched(desk: BaseScreen, dialog: QuestionDialog[Any]) -> str | None:
    """Return what became of a dialog; say how the question ended if somebody else was first."""
    watch = asyncio.create_task(_watch(desk, dialog))
    try:
        return await desk.ask(dialog)
    finally:
        watch.cancel()


async def votes(rt: Runtime, asked: Question) -> list[str]:
    """Return who approved so far, of a gate that takes several."""
    if asked.kind is not QuestionKind.APPROVAL or asked.quorum < 2:
        return []
    _, answers = await rt.questions.of_job(asked.job)
    return [one.voter for one in answers if one.accepted and one.question == asked.ordinal]


async def ended(rt: Runtime, asked: Question) -> str:
    """Say how a question ended, by whom and where: `D-7/1 was answered by ben: red (slack)`."""
    _, answers = await rt.questions.of_job(asked.job)
    places = [one.source for one in answers if one.accepted and one.question == asked.ordinal]
    where = f" (in {places[-1]})" if places else ""
    return f"{asked.name} {resolution_text(asked)}{where}"


async def _watch(desk: BaseScreen, dialog: QuestionDialog[Any]) -> None:
    asked = dialog.question
    while True:
        await asyncio.sleep(EVERY)
        with contextlib.suppress(DraftsmanError):  # the banner says that the database is away
            now = await desk.rt.questions.get(asked.job, asked.ordinal)
            if now.status is not QuestionStatus.OPEN:
                how = await ended(desk.rt, now)
                desk.show_message(how)
                is_input = now.kind is QuestionKind.INPUT
                dialog.close(how, late=is_input and now.status is QuestionStatus.EXPIRED)
                return
            dialog.renew(now, await votes(desk.rt, now))
