"""Three themes of ours; without colours (NO_COLOR, --no-color) every meaning is a word as well.

No Textual here: the command line reads the names.
"""

from __future__ import annotations

from typing import Final, TypedDict


class Palette(TypedDict):
    """What Textual makes a theme of."""

    name: str
    primary: str
    secondary: str
    accent: str
    warning: str
    error: str
    success: str
    foreground: str
    background: str
    surface: str
    panel: str
    dark: bool
    variables: dict[str, str]


THEMES: Final = (
    Palette(
        name="dark",
        primary="#5fafff",
        secondary="#87afd7",
        accent="#ffaf5f",
        warning="#ffd75f",
        error="#ff7070",
        success="#87d787",
        foreground="#dadada",
        background="#121212",
        surface="#1c1c1c",
        panel="#303030",
        dark=True,
        variables={"quiet": "#949494"},
    ),
    Palette(
        name="light",
        primary="#005faf",
        secondary="#3a5f7f",
        accent="#a04000",
        warning="#7a5200",
        error="#b00020",
        success="#1a6b1a",
        foreground="#1c1c1c",
        background="#fbfbfb",
        surface="#f0f0f0",
        panel="#dcdcdc",
        dark=False,
        variables={"quiet": "#5a5a5a"},
    ),
    Palette(
        name="contrast",
        primary="#00ffff",
        secondary="#ffffff",
        accent="#ffff00",
        warning="#ffff00",
        error="#ff8080",
        success="#00ff00",
        foreground="#ffffff",
        background="#000000",
        surface="#000000",
        panel="#404040",
        dark=True,
        variables={"quiet": "#e0e0e0"},
    ),
)
NAMES: Final = tuple(theme["name"] for theme in THEMES)
