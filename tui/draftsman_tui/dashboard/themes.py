"""Four themes of ours; each meaning is a word as well, so the last has no colour at all.

A test computes the contrast of every role by WCAG: 4.5 at least, 7 in `contrast`.
"""

from __future__ import annotations

from typing import Any, Final

from textual.theme import Theme

_PARTS: Final = (
    *("primary", "secondary", "accent", "warning", "error", "success"),
    *("foreground", "background", "surface", "panel", "boost"),
)
_NO_COLOURS: Final[dict[str, Any]] = dict.fromkeys(_PARTS, "ansi_default")
_MORE: Final = (
    *(
        "ansi-background",
        "ansi-foreground",
        "quiet",
        "border",
        "border-blurred",
        "block-cursor-foreground",
        "block-cursor-background",
    ),
    *("input-cursor-foreground", "input-cursor-background", "input-selection-background"),
    *("footer-foreground", "footer-background", "footer-key-foreground"),
)
THEMES: Final = (
    Theme(
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
        variables={"quiet": "#9e9e9e"},
    ),
    Theme(
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
    Theme(
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
        variables={"quiet": "#e0e0e0"},
    ),
    Theme(
        name="none",
        ansi=True,
        **_NO_COLOURS,
        variables={
            **dict.fromkeys(_MORE, "ansi_default"),
            "block-cursor-text-style": "bold reverse",
            "input-cursor-text-style": "reverse",
            "button-focus-text-style": "bold reverse",
        },
    ),
)
NAMES: Final = tuple(theme.name for theme in THEMES)


def next_to(name: str) -> str:
    """Return the theme after this one."""
    return NAMES[(NAMES.index(name) + 1) % len(NAMES)] if name in NAMES else NAMES[0]
