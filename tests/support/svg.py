"""Renders a dashboard as a small SVG that people can read, without external resources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from html import escape
from typing import Any, Final

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual._ansi_theme import MONOKAI
from textual.app import App

WIDE: Final = 8.4
"""Width of a cell in units; text is stretched to it in any font."""
HIGH: Final = 18
"""Height of a line in units."""
WORDS: Final = re.compile(r"\S+(?: \S+)*")
"""Pieces of text: separate for wide characters, whose width differs between fonts."""
FONT: Final = "ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace"
Look = tuple[str, str, str]
"""Color, background and other styles of a piece of text, as CSS."""


def lines_of(app: App[Any]) -> list[list[Segment]]:
    """Return the lines of the screen, with dialogs above."""
    for screen in app.screen_stack:
        screen.refresh()  # a dialog that was read without its background keeps that picture
    update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    strips: Iterable[Any] = update.strips  # type: ignore[union-attr]
    return [list(Segment.simplify(part for strip in line for part in strip)) for line in strips]


def render_svg(app: App[Any], title: str = "draftsman") -> str:
    """Render the current screen of an application."""
    lines = lines_of(app)
    wide = max(map(_width, lines)) * WIDE
    high = len(lines) * HIGH
    ground = look_of(lines[0][0].style)[1]
    names: dict[Look, str] = {}
    body = [part for y, line in enumerate(lines) for part in _line(line, y * HIGH, ground, names)]
    styles = [
        f".{name}{{fill:{colour}{more}}}" for (colour, _, more), name in sorted(names.items())
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high}">',
            f"<title>{escape(title)}</title>",
            f"<style>text{{font:14px {FONT};white-space:pre}}",
            *sorted(styles),
            "</style>",
            f'<rect width="100%" height="100%" fill="{ground}"/>',
            *body,
            "</svg>\n",
        ]
    )


def _line(line: Sequence[Segment], y: int, ground: str, names: dict[Look, str]) -> Iterator[str]:
    """Yield the backgrounds of a line, then its pieces of text without surrounding spaces."""
    x = 0
    texts = []
    for text, style, _ in line:
        colour, background, more = look_of(style)
        cells = cell_len(text)
        if background != ground:
            size = f'width="{cells * WIDE:g}" height="{HIGH}"'
            yield f'<rect x="{x * WIDE:g}" y="{y}" {size} fill="{background}"/>'
        for word in WORDS.finditer(text):
            name = names.setdefault((colour, "", more), f"s{len(names)}")
            at = x + cell_len(text[: word.start()])
            long = cell_len(word[0])
            texts.append(
                f'<text class="{name}" x="{at * WIDE:g}" y="{y + 13}"'
                f' textLength="{long * WIDE:g}">{escape(word[0], quote=False)}</text>'
            )
        x += cells
    yield from texts


@cache
def look_of(style: Style | None) -> Look:
    """Return the colors and the font of a style."""
    style = style or Style()
    colour = _hex(style.color, True)
    background = _hex(style.bgcolor, False)
    if style.reverse:
        colour, background = background, colour
    more = ";font-weight:bold" if style.bold else ""
    more += ";font-style:italic" if style.italic else ""
    more += ";text-decoration:underline" if style.underline else ""
    more += ";opacity:.6" if style.dim else ""
    return colour, background, more


def _hex(colour: Color | None, foreground: bool) -> str:
    return (colour or Color.default()).get_truecolor(MONOKAI, foreground).hex


def _width(line: Sequence[Segment]) -> int:
    return sum(cell_len(text) for text, _, _ in line)
