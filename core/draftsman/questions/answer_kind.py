"""What a free answer to a question has to be, and its check. Pure."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Final


class AnswerKind(StrEnum):
    """Kind of the free answers to a question; also a type of the database.

    The choices of a question for a `person` are the people of the directory when it is asked.
    """

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    DATE = "date"
    PERSON = "person"


NOUNS: Final = {
    AnswerKind.INTEGER: ("a whole number", "31"),
    AnswerKind.NUMBER: ("a number", "12.50"),
    AnswerKind.DATE: ("a date", "2026-11-30"),
}
"""The kinds whose text is checked, as people read them, with an example."""
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,30}")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{1,30})?")


def wanted_answer(kind: AnswerKind) -> str:
    """Return what to enter, `a whole number, such as 31`; "" for any text."""
    return ", such as ".join(NOUNS.get(kind, ()))


def normalize_answer(kind: AnswerKind, text: str) -> str:
    """Return a free answer as it is stored: `31`, `12.50`, `2026-11-30`; raises ValueError."""
    if kind is AnswerKind.INTEGER and _INTEGER.fullmatch(text):
        return str(int(text))
    if kind is AnswerKind.NUMBER and _NUMBER.fullmatch(text):
        return format(Decimal(text), "f")
    if kind is AnswerKind.DATE:
        return date.fromisoformat(text).isoformat()
    if kind in NOUNS:
        raise ValueError
    return text


def is_answer(kind: AnswerKind, text: str) -> bool:
    """Return whether a text is an answer of this kind."""
    try:
        normalize_answer(kind, text)
    except ValueError:
        return False
    return True
