"""HTML elements, with everything escaped that is not an element itself."""

from __future__ import annotations

from html import escape
from typing import Final

VOID: Final = frozenset({"br", "hr", "input", "meta"})
"""Elements without content."""


class Markup(str):
    """HTML. Any other text is escaped where it is put into HTML."""

    __slots__ = ()


def join(*parts: str, by: str = "") -> Markup:
    """Return parts as HTML."""
    return Markup(by.join(map(_safe, parts)))


def element(tag: str, /, *content: str, **attributes: str | bool) -> Markup:
    """Return an element; `class_` is the attribute `class`, and a false attribute is left out."""
    texts = [
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(value)}"')
        for key, value in attributes.items()
        if value is not False
    ]
    start = f"<{tag}{''.join(texts)}>"
    return Markup(start if tag in VOID else f"{start}{join(*content)}</{tag}>")


def _safe(part: str) -> str:
    return part if isinstance(part, Markup) else escape(part)
