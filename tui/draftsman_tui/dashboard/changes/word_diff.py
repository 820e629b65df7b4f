"""Changed words of a removed line and the added line in its place. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

MAX_COMPARED: Final = 500
"""Longest line of which the words are compared, in characters."""
LEAST_EQUAL: Final = 0.4
"""Part of two lines that is equal at least; of other lines all words have changed."""
Span = tuple[int, int]
"""Beginning and end of a part of a line."""
_WORD: Final = re.compile(r"\w+|\s+|.")


@lru_cache(maxsize=4096)
def changed_words(old: str, new: str) -> tuple[Sequence[Span], Sequence[Span]]:
    """Return the spans of each line that the other does not have; none if little is equal."""
    if max(len(old), len(new)) > MAX_COMPARED:
        return (), ()
    words: list[list[str]] = [_WORD.findall(line) for line in (old, new)]
    matcher = SequenceMatcher(None, words[0], words[1], autojunk=False)
    equal = sum(
        len("".join(words[0][at : at + size])) for at, _, size in matcher.get_matching_blocks()
    )
    if 2 * equal < LEAST_EQUAL * (len(old) + len(new)):
        return (), ()
    starts = [_starts(line) for line in words]
    spans: tuple[list[Span], list[Span]] = ([], [])
    for tag, first, last, start, end in matcher.get_opcodes():
        for side, (begin, stop) in enumerate(((first, last), (start, end))):
            if tag != "equal" and begin < stop:
                spans[side].append((starts[side][begin], starts[side][stop]))
    return spans


def _starts(words: Sequence[str]) -> list[int]:
    """Return where each word begins, and the end of the last."""
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    return starts
