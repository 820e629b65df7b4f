"""Nonstandard phrases in a text: headless clauses, and pronouns in place of a noun."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MOST: Final = {"what/who": 0.5, "one": 3.0, "said": 0.2, "somebody": 0.2}
"""Maximum of each phrase per 1,000 words: the level of httpx, psycopg, Textual and pytest."""

WORD: Final = re.compile(r"[A-Za-z][A-Za-z'\u2019-]*")
_SENTENCE: Final = re.compile(r"[^.!?\n]*(?:\n(?!\s*\n)[^.!?\n]*|[.!?](?=\w)[^.!?\n]*)*[.!?]?")
_WHAT: Final = re.compile(r"\b(what|who)\b", re.I)
_PRONOUNS: Final = {
    "one": re.compile(r"\bones?\b", re.I),
    "said": re.compile(r"\b(?:said|told|meant)\b", re.I),
    "somebody": re.compile(r"\b(?:somebody|nobody|whoever|anybody|everybody)\b", re.I),
}
_ANY: Final = re.compile(
    "|".join(pattern.pattern for pattern in (_WHAT, *_PRONOUNS.values())), re.I
)
_ASKS: Final = re.compile(
    r"\b(?:ask(?:s|ed)?|check(?:s|ed)?|choos(?:e|es)|controls?|decid(?:e|es|ed)|determin(?:e|es)"
    r"|defin(?:e|es)|explains?|knows?|learns?|no matter|see|sees|shows?|tells?|understand)\s+$",
    re.I,
)
"""Verbs before an indirect question with `what` or `who`."""
_BEFORE_HEADLESS: Final = re.compile(
    r"(?:^|[^\w\s`]|\b(?:about|after|and|as|at|because|before|beside|besides|but|by|except|for|from"
    r"|if|in|into|is|like|of|on|or|over|than|that|then|to|under|unless|until|when|where|while|with"
    r"|without))\s*$",
    re.I,
)
"""Any other `who` is relative: "the user who …"."""


@dataclass(frozen=True, slots=True)
class Hit:
    phrase: str
    offset: int
    excerpt: str


def find_hits(text: str) -> Iterator[Hit]:
    """Yield each banned phrase of a text in which code is already replaced."""
    if not _ANY.search(text):
        return
    for sentence in _SENTENCE.finditer(text):
        whole = sentence.group()
        if whole.endswith("?"):
            headless = []
        else:
            headless = [match for match in _WHAT.finditer(whole) if _is_headless(whole, match)]
        matches = [("what/who", match) for match in headless]
        for phrase, pattern in _PRONOUNS.items():
            matches += [(phrase, match) for match in pattern.finditer(whole)]
        for phrase, match in sorted(matches, key=lambda pair: pair[1].start()):
            excerpt = " ".join(whole[max(0, match.start() - 40) : match.end() + 40].split())
            yield Hit(phrase, sentence.start() + match.start(), excerpt)


def count_words(text: str) -> int:
    return len(WORD.findall(text))


def _is_headless(sentence: str, match: re.Match[str]) -> bool:
    before, after = sentence[: match.start()], sentence[match.end() :]
    if _ASKS.search(before) or after.lower().startswith(" to "):
        return False
    return match.group().lower() == "what" or bool(_BEFORE_HEADLESS.search(before))
