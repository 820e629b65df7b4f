"""Comparison of texts with the values of choices."""

from __future__ import annotations

import unicodedata


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
