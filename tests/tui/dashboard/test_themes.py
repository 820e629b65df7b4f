"""Contrast of the themes, by the formula of WCAG 2.2."""

from __future__ import annotations

import pytest
from rich.color import Color as Term
from rich.color import ColorSystem
from textual.color import Color

from draftsman_tui.dashboard.themes import NAMES, THEMES, Palette, next_theme
from tests.support.cases import cases

COLOURED = [theme for theme in THEMES if "ansi" not in theme]
ROLES = (
    "foreground",
    "primary",
    "secondary",
    "accent",
    "warning",
    "error",
    "success",
    "quiet",
    "denied",
)
GROUNDS = ("background", "surface", "panel", "row")


def _name(theme: Palette) -> str:
    return theme["name"]


def _colour(theme: Palette, name: str) -> Color:
    return Color.parse(theme["variables"].get(name) or str(dict(theme)[name]))


def contrast_ratio(first: Color, second: Color) -> float:
    """Return the ratio of two colors, from 1 to 21."""

    def luminance(colour: Color) -> float:
        parts = (part / 255 for part in colour.rgb)
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_formula() -> None:
    assert contrast_ratio(Color.parse("#fff"), Color.parse("#000")) == pytest.approx(21)
    assert contrast_ratio(Color.parse("#777"), Color.parse("#fff")) == pytest.approx(4.48, abs=0.01)


@cases("role", ROLES)
@cases("theme", COLOURED, ids=_name)
def test_each_role_has_enough_contrast(theme: Palette, role: str) -> None:
    least = 7.0 if theme["name"] == "contrast" else 4.5
    for ground in GROUNDS:
        ratio = contrast_ratio(_colour(theme, role), _colour(theme, ground))
        assert ratio >= least, f"{role} on {ground}: {ratio:.2f}"


@cases("theme", COLOURED, ids=_name)
def test_banner_has_enough_contrast(theme: Palette) -> None:
    assert contrast_ratio(_colour(theme, "background"), _colour(theme, "error")) >= 4.5


@cases("system", [ColorSystem.STANDARD, ColorSystem.EIGHT_BIT])
@cases("theme", COLOURED, ids=_name)
def test_each_role_is_visible_on_terminals_with_few_colors(
    theme: Palette, system: ColorSystem
) -> None:
    def shown(name: str) -> int | None:
        return Term.parse(_colour(theme, name).hex).downgrade(system).number

    for ground in GROUNDS:
        for role in ROLES:
            assert shown(role) != shown(ground), f"{role} on {ground}"


def test_themes_cycle() -> None:
    assert NAMES == ("dark", "light", "contrast", "none")
    assert [next_theme(name) for name in NAMES] == [*NAMES[1:], NAMES[0]]
