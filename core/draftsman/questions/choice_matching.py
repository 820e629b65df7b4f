"""Comparison of texts with the values of choices."""

from __future__ import annotations

import re
import unicodedata
from difflib import SequenceMatcher
from typing import Final

_DIGITS: Final = re.compile(r"[0-9]+")
_ONE_MISTAKE: Final = 2
"""A letter that is another, or in another place, is one too many and one too few."""
_MIN_LENGTH: Final = 3
_LONG: Final = 8
"""Length from which two mistakes are allowed."""


def normalize_value(text: str) -> str:
    """Return the value of a choice as questions store it: NFKC, without surrounding space."""
    return unicodedata.normalize("NFKC", text).strip()


def matching_key(text: str) -> str:
    """Return a key that is equal for texts that name the same choice.

    Letters match without regard to case, width and composition: Unicode's compatibility caseless
    match. Two choices of a question have different keys.
    """
    folded = unicodedata.normalize("NFD", text).casefold()
    folded = unicodedata.normalize("NFKD", folded).casefold()
    return unicodedata.normalize("NFKC", folded).strip()


def is_nearly(text: str, name: str) -> bool:
    """Return whether a text is the beginning of a choice's name, or the name with a mistake.

    Texts with other numbers are not: `version 2` is no mistyped `version 1`.
    """
    typed = matching_key(text)
    known = matching_key(name)
    if typed and known.startswith(typed):
        return True
    allowed = _ONE_MISTAKE * (2 if len(known) >= _LONG else 1)
    if (
        min(len(typed), len(known)) < _MIN_LENGTH
        or abs(len(typed) - len(known)) > allowed
        or _DIGITS.findall(typed) != _DIGITS.findall(known)
    ):
        return False
    same = sum(block.size for block in SequenceMatcher(None, typed, known).get_matching_blocks())
    return len(typed) + len(known) - 2 * same <= allowed
