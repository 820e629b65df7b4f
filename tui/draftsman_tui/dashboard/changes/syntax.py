"""Syntax colors of a line of a file."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pygments.lexer import Lexer

ROLES: Final = ("comment", "keyword", "string", "number", "name")
"""Roles of the parts of a line; other parts have the role ""."""
MAX_LENGTH: Final = 500
"""Longest line that is colored, in characters."""
Part = tuple[str, str]
"""A text and its role."""


@lru_cache(maxsize=4096)
def colored(file: str, line: str) -> tuple[Part, ...]:
    """Return the parts of a line with their roles, by the name of its file.

    A line is read by itself, so that a part of a large file costs no more than it shows: the inside
    of a text over several lines is colored as code.
    """
    lexer = _lexer(file.rpartition("/")[2])
    if lexer is None or not line or len(line) > MAX_LENGTH:
        return ((line, ""),)
    parts = [(text, _role(str(token))) for token, text in lexer.get_tokens(line) if text]
    read = "".join(text for text, _ in parts).removesuffix("\n")
    return tuple(parts) if read == line else ((line, ""),)


@lru_cache(maxsize=64)
def _lexer(name: str) -> Lexer | None:
    from pygments.lexers import get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        return get_lexer_for_filename(name, ensurenl=False, stripnl=False)
    except ClassNotFound:
        return None


def _role(token: str) -> str:
    """Return the role of a token by its type, as `Token.Literal.String.Double`."""
    kinds = token.split(".")
    if "Comment" in kinds:
        return "comment"
    if "Keyword" in kinds or "Word" in kinds:
        return "keyword"
    if "String" in kinds:
        return "string"
    if "Number" in kinds:
        return "number"
    return "name" if kinds[-1] in ("Function", "Class", "Decorator", "Tag") else ""
