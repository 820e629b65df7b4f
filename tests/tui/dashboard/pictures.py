"""Compares the screens of a dashboard with their stored pictures.

Each screen is drawn in three sizes and two themes by one application, from fixed values, without a
database; where the light theme follows from that of another size, it is not drawn. An SVG of a
size and theme is stored for people to look at (`jobs.svg`); all of them are stored as cells
(`jobs.cells`): each line as its text and, below it, one letter a cell for the role of that cell, a
space for the most frequent role. `+3` is three more lines of the same. The legend gives the color,
background and font of a role, by its name in the palettes or in both themes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from string import ascii_letters, digits, punctuation
from types import SimpleNamespace
from typing import Any, Final, TypeVar, cast

from rich.cells import cell_len
from textual.app import App
from textual.widgets import Input, TextArea

from draftsman.people.policy import Policy
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.attention.attention import AttentionCount
from draftsman_tui.dashboard.frame.messages import RowsLoaded, StatsUpdated
from draftsman_tui.dashboard.tables.filter import NOTHING
from draftsman_tui.dashboard.tables.resource import Query, Rows
from draftsman_tui.dashboard.themes import THEMES as PALETTES
from draftsman_tui.dashboard.views import VIEWS
from tests.support.svg import Look, lines_of, look_of, render_svg
from tests.tui.dashboard.fixtures_data import ANNA, NOW, ROWS, STATS
from tests.tui.dashboard.pilot import DashboardPilot, open_dashboard

T = TypeVar("T")
EXPECTED: Final = Path(__file__).parent / "pictures"
ACTUAL: Final = Path(__file__).parents[3] / ".pytest_cache" / "pictures"
"""Folder of pictures that differ; copy them to accept them."""
SIZES: Final = ((80, 24), (120, 30), (200, 50))
THEMES: Final = ("dark", "light")
DRAWN: Final = (120, 30)
"""The size of the SVG, which is dark."""
LETTERS: Final = ascii_letters + digits + punctuation
Pair = tuple[Look, ...]
"""Look of a cell in each theme."""
Screen = list[list[tuple[str, Look]]]
"""The text of each line in parts of one look."""
Pairs = list[list[tuple[str, Pair]]]
"""The text of each line in parts of one look in each theme."""
PARTS: Final = re.compile(" +|[^ ]+")
RUNTIME: Final[Runtime] = cast(
    Runtime, SimpleNamespace(policy=Policy(), embedded=True, seen_by=lambda viewer: RUNTIME)
)
"""Runtime of the pictures, whose data is not loaded."""


@asynccontextmanager
async def shown(
    view: str = "jobs", *, read_only: bool = False, toasts: bool = False
) -> AsyncIterator[DashboardPilot]:
    """Open a dashboard with a table of fixed values."""
    how: dict[str, Any] = {
        "view": view,
        "size": SIZES[0],
        "read_only": read_only,
        "toasts": toasts,
    }
    async with open_dashboard(RUNTIME, ANNA, **how) as seen:
        seen.app.refresher.attention = AttentionCount(6, 2)
        seen.app.main.post_message(_rows(view))
        seen.app.main.post_message(StatsUpdated(STATS))
        await seen.see("your clock is 4 s ahead")
        yield seen


async def show_table(view: str, seen: DashboardPilot) -> None:
    """Change to a table of fixed values."""
    await seen.command(view)
    seen.app.main.post_message(_rows(view))
    await seen.until(lambda: f"{view} · {len(ROWS[view])}" in seen.text)  # or it is open already


def _rows(view: str) -> RowsLoaded:
    query = Query(NOTHING, NOW, group=VIEWS[view].default_group)
    return RowsLoaded(VIEWS[view], query, Rows(ROWS[view]))


async def assert_matches_picture(name: str, seen: DashboardPilot) -> None:
    """Fail if a screen differs from its pictures, and write the new pictures."""
    for field in (*seen.app.screen.query(Input), *seen.app.screen.query(TextArea)):
        field.cursor_blink = False
        field._pause_blink(visible=True)
    dark, light = THEMES
    drawn = {}
    for size in sorted(SIZES, key=DRAWN.__eq__):
        drawn[size] = await _draw(seen, dark, size)
    svg = render_svg(seen.app)
    paired = _pairs(drawn[DRAWN], await _draw(seen, light, DRAWN))
    looks = _light_looks(paired)
    sizes = []
    for size in SIZES:
        screen = drawn[size]
        if size == DRAWN:
            sizes.append(paired)
        elif all(look in looks for line in screen for _, look in line):
            sizes.append([[(text, (look, looks[look])) for text, look in line] for line in screen])
        else:
            sizes.append(_pairs(screen, await _draw(seen, light, size)))
    taken = {f"{name}.svg": svg, f"{name}.cells": _cells(sizes)}
    wrong = [file for file, text in taken.items() if not _matches(file, text)]
    if wrong:
        raise AssertionError(
            f"{name} differs from its picture ({', '.join(wrong)}); see {ACTUAL}; to accept it:"
            f" cp {ACTUAL}/{name}.* {EXPECTED}/"
        )


async def _draw(seen: DashboardPilot, theme: str, size: tuple[int, int]) -> Screen:
    """Draw the screen; without a change of theme and size, as it is."""
    seen.app.theme = theme
    await seen.pilot.resize_terminal(*size)
    await seen.pilot.pause()
    return _screen(seen.app)


def _matches(name: str, text: str) -> bool:
    expected = EXPECTED / name
    actual = ACTUAL / name
    if expected.exists() and expected.read_text("utf-8") == text:
        actual.unlink(missing_ok=True)
        return True
    ACTUAL.mkdir(parents=True, exist_ok=True)
    actual.write_text(text, "utf-8")
    return False


def _screen(app: App[Any]) -> Screen:
    """Return the parts of each line; of a space only the background is visible."""
    lines: Screen = []
    for line in lines_of(app):
        parts: list[tuple[str, Look]] = []
        for text, style, _ in line:
            color, background, more = look_of(style)
            for part in PARTS.findall(text):
                visible = (color, background, more) if part[0] != " " else ("", background, "")
                parts.append((part, visible))
        lines.append(_joined(parts))
    return lines


def _joined(parts: Iterable[tuple[str, T]]) -> list[tuple[str, T]]:
    """Join neighbors of one look."""
    looks = groupby(parts, key=itemgetter(1))
    return [("".join(text for text, _ in same), look) for look, same in looks]


def _light_looks(pairs: Pairs) -> dict[Look, Look]:
    """Return the look in the light theme by that in the dark theme, but where it has several."""
    found: dict[Look, set[Look]] = {}
    for line in pairs:
        for _, (dark, light) in line:
            found.setdefault(dark, set()).add(light)
    return {dark: light.pop() for dark, light in found.items() if len(light) == 1}


def _cells(sizes: list[Pairs]) -> str:
    """Return the text and the roles of all sizes, and the legend of the roles."""
    counts: Counter[Pair] = Counter()
    for text, pair in (part for screen in sizes for line in screen for part in line):
        counts[pair] += len(text)
    legend: dict[Pair, str] = {counts.most_common(1)[0][0]: " "}
    parts = []
    for (width, height), screen in zip(SIZES, sizes, strict=True):
        parts.append(f"{width}x{height}")
        for line, repeated in groupby(screen):
            parts.append("|" + "".join(text for text, _ in line).rstrip())
            if roles := "".join(_roles(line, legend)).rstrip():
                parts.append(":" + roles)
            if more := len(list(repeated)) - 1:
                parts.append(f"+{more}")
    names = [f"{letter!r} {_role(pair)}" for pair, letter in legend.items()]
    return "\n".join([*parts, *names, ""])


def _pairs(dark: Screen, light: Screen) -> Pairs:
    """Return the parts with their look in both themes, which show the same text."""
    return [_pair(*lines) for lines in zip(dark, light, strict=True)]


def _pair(dark: list[tuple[str, Look]], light: list[tuple[str, Look]]) -> list[tuple[str, Pair]]:
    if [text for text, _ in dark] != [text for text, _ in light]:
        dark, light = (
            [(char, look) for text, look in line for char in text] for line in (dark, light)
        )
    texts = [[text for text, _ in line] for line in (dark, light)]
    assert texts[0] == texts[1], f"the themes differ in text: {texts}"
    looks = zip((look for _, look in dark), (look for _, look in light), strict=True)
    return _joined(zip(texts[0], looks, strict=True))


def _roles(line: list[tuple[str, Pair]], legend: dict[Pair, str]) -> Iterator[str]:
    for text, pair in line:
        if pair not in legend:
            legend[pair] = LETTERS[len(legend) - 1]
        yield legend[pair] * cell_len(text)


def _role(pair: Pair) -> str:
    (dark, dark_ground, more), (light, light_ground, more_light) = pair
    assert more == more_light, pair
    color = f"{_color(dark, light)} on " if dark else "on "
    return f"{color}{_color(dark_ground, light_ground)}{more}"


def _color(dark: str, light: str) -> str:
    """Return the name of a color in the palettes, else the color in each theme."""
    first, second = (_palette(theme) for theme in THEMES)
    for name, color in first.items():
        if _same(color, dark) and _same(second[name], light):
            return name
    return f"{dark}/{light}"


def _palette(theme: str) -> dict[str, str]:
    palette: dict[str, Any] = dict(next(item for item in PALETTES if item["name"] == theme))
    colors = palette | palette["variables"]
    return {name: color for name, color in colors.items() if str(color).startswith("#")}


def _same(first: str, second: str) -> bool:
    """Return whether two colors are equal but for rounding."""
    pairs = zip(bytes.fromhex(first[1:]), bytes.fromhex(second[1:]), strict=True)
    return all(abs(left - right) <= 1 for left, right in pairs)
