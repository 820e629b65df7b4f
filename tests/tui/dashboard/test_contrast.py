"""Contrast of the text that screens and dialogs draw, by the formula of WCAG 2.2."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rich.color import Color as RichColor
from textual.color import Color

from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from tests.support.slow import slow_except
from tests.tui.dashboard.fixtures_data import PATCH
from tests.tui.dashboard.pilot import DashboardPilot, open_dashboard
from tests.tui.dashboard.test_themes import contrast_ratio

LEAST = {"dark": 4.5, "light": 4.5, "contrast": 7.0}
LINES = set("─│╭╮╰╯┃━▁▂▃▄▅▆▇█▌▐▎░▒▓·▔▕▏")
"""Signs of frames and bars, which are no text."""


@pytest.mark.parametrize("theme", slow_except(["dark"], LEAST))
async def test_text_has_enough_contrast(
    make: Factory, rt: Runtime, owner: Actor, theme: str
) -> None:
    more = QUESTION.model_copy(update={"freeform": True, "context": "The second is cheaper."})
    await make.asked(more, title="Paint the door")
    work = await make.running()
    await rt.changes.store(work.lease, PATCH.encode())
    await rt.asking.ask(work.lease, GATE)
    await make.failed()
    async with open_dashboard(rt, owner, size=(140, 40)) as seen:
        await seen.see("needs a person", "Newest events")
        low: dict[str, object] = {}
        least = LEAST[theme]
        seen.app.theme = theme
        await seen.pilot.pause()
        _collect(low, seen, least, "jobs")
        for keys, dialog in (
            ("n", "NewJobDialog"),
            ("question_mark", "HelpDialog"),
            ("s", "ChoiceDialog"),
            ("A", "AnswerDialog"),
        ):
            await seen.press(keys)
            await seen.dialog(dialog)
            _collect(low, seen, least, dialog)
            if dialog == "AnswerDialog":
                await seen.press("s")
                await seen.see("2 of 2", "inventory/")
                _collect(low, seen, least, "approval")
            await seen.press("escape")
            await seen.dialog("MainScreen")
    assert not low


def _collect(low: dict[str, object], seen: DashboardPilot, least: float, where: str) -> None:
    """Collect the texts with too little contrast."""
    for text, ratio in _texts(seen):
        if ratio < least - 0.005:
            low[f"{where}: {text.strip()}"] = round(ratio, 2)


def _texts(seen: DashboardPilot) -> Iterator[tuple[str, float]]:
    """Yield the text of the screen with its contrast."""
    for strip in seen.app.screen._compositor.render_strips():
        for segment in strip:
            style = segment.style
            letters = set(segment.text) - LINES - {" "}
            if letters and style is not None and style.color and style.bgcolor:
                colors = _color(style.color), _color(style.bgcolor)
                yield segment.text, contrast_ratio(*colors)


def _color(color: RichColor) -> Color:
    return Color(*color.get_truecolor())
