"""Color themes; `none` uses no color, since every role is also expressed by a word.

A test checks the WCAG contrast of every role: at least 4.5, and 7 in `contrast`.

Does not import Textual, since the command line reads the names.
"""

from __future__ import annotations

from typing import Final, NotRequired, TypedDict


class Palette(TypedDict):
    """Arguments of a Textual theme."""

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
    ansi: NotRequired[bool]
    variables: dict[str, str]


_VARIABLES: Final = (
    "ansi-background",
    "ansi-foreground",
    "quiet",
    "denied",
    "row",
    "line",
    "border",
    "border-blurred",
    "block-cursor-foreground",
    "block-cursor-background",
    "input-cursor-foreground",
    "input-cursor-background",
    "input-selection-background",
    "footer-foreground",
    "footer-background",
    "footer-key-foreground",
)
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
        variables={
            "quiet": "#9e9e9e",
            "denied": "#d7afff",
            "row": "#17324b",
            "line": "#5a5a5a",
        },
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
        variables={
            "quiet": "#5a5a5a",
            "denied": "#7a3fb0",
            "row": "#cfe3f7",
            "line": "#a8a8a8",
        },
    ),
    Palette(
        name="contrast",
        primary="#00ffff",
        secondary="#ffffff",
        accent="#ffff00",
        warning="#ffff00",
        error="#ff9d9d",
        success="#00ff00",
        foreground="#ffffff",
        background="#000000",
        surface="#000000",
        panel="#262626",
        dark=True,
        variables={
            "quiet": "#e0e0e0",
            "denied": "#ffafff",
            "row": "#002244",
            "line": "#9a9a9a",
        },
    ),
    Palette(
        name="none",
        primary="ansi_default",
        secondary="ansi_default",
        accent="ansi_default",
        warning="ansi_default",
        error="ansi_default",
        success="ansi_default",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        dark=True,
        ansi=True,
        variables={
            **dict.fromkeys(_VARIABLES, "ansi_default"),
            "block-cursor-text-style": "bold reverse",
            "input-cursor-text-style": "reverse",
            "button-focus-text-style": "bold reverse",
        },
    ),
)
NAMES: Final = tuple(theme["name"] for theme in THEMES)


def next_theme(name: str) -> str:
    """Return the name of the theme after `name`, the first after the last."""
    return NAMES[(NAMES.index(name) + 1) % len(NAMES)] if name in NAMES else NAMES[0]
