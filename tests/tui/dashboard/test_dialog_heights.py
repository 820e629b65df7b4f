"""A long question uses the rows of the screen, beside its diff and its keys."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from draftsman_tui.dashboard.questions.answer_dialog import AnswerDialog
from draftsman_tui.dashboard.questions.approval_dialog import ApprovalDialog
from draftsman_tui.dashboard.questions.question_dialog import QuestionDialog
from tests.tui.dashboard.fixtures_data import GATE, PATCH, question
from tests.tui.dashboard.pictures import shown

TEXT = "\n".join(f"line {nth}" for nth in range(60))
SIZES = ((80, 24), (120, 40), (200, 50))


@pytest.mark.usefixtures("frozen")
async def test_a_long_text_fills_the_screen_and_leaves_the_rest_visible() -> None:
    long_gate = replace(GATE, text=TEXT)
    async with shown("inbox") as seen:
        for size in SIZES:
            await seen.pilot.resize_terminal(*size)
            long_diff = PATCH + "".join(f"+line {nth}\n" for nth in range(100))
            dialogs: dict[str, tuple[QuestionDialog[object], float]] = {
                "1  all fixes": (AnswerDialog(replace(question(), text=TEXT)), 0.5),
                "y: approve": (ApprovalDialog(long_gate), 0.5),
                "- import os": (ApprovalDialog(long_gate, diff=PATCH), 0.25),
                "[ ]: file": (ApprovalDialog(long_gate, diff=long_diff), 0.25),
            }
            for word, (dialog, part) in dialogs.items():
                await seen.app.push_screen(dialog)
                await seen.until(partial(_is_tall, dialog, 0.9 * size[1]))
                await seen.see(word, "esc: back")
                shown_lines = sum("line" in line and "+" not in line for line in seen.lines)
                assert shown_lines >= part * size[1], (size, word, seen.text)
                dialog.dismiss(None)
                await seen.dialog("MainScreen")


def _is_tall(dialog: QuestionDialog[object], rows: float) -> bool:
    boxes = dialog.query(".box")
    return bool(boxes) and boxes.first().region.height >= rows
