"""Phrases per 1,000 words, by kind of text and by room, and the limits that stand for them."""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.language.corpus import Kind, Text
from tests.language.phrases import MOST, count_words, find_hits

LIMITS: Final = Path(__file__).with_name("limits.toml")
Limits = dict[str, dict[str, dict[str, float]]]
"""Limits by room, kind of text and phrase."""


@dataclass(slots=True)
class Measure:
    words: int = 0
    hits: Counter[str] = field(default_factory=Counter)

    def add(self, text: Text) -> None:
        self.words += count_words(text.content)
        self.hits.update(hit.phrase for hit in find_hits(text.content))

    def rate(self, phrase: str) -> float:
        """Return the phrase's number per 1,000 words."""
        return 1000 * self.hits[phrase] / max(self.words, 1)


def measure_rooms(texts: Iterable[Text]) -> dict[tuple[str, Kind], Measure]:
    measures: dict[tuple[str, Kind], Measure] = defaultdict(Measure)
    for text in texts:
        measures[text.room, text.kind].add(text)
    return measures


def read_limits() -> Limits:
    limits: Limits = tomllib.loads(LIMITS.read_text(encoding="utf-8"))
    return limits


def limit_of(limits: Limits, room: str, kind: str, phrase: str) -> float:
    """Return a room's limit, which is never below the final limit."""
    own = limits.get(room, {}).get(kind, {}).get(phrase, 0.0)
    return max(own, MOST[phrase])


def lowered_limits(measures: dict[tuple[str, Kind], Measure], limits: Limits) -> str:
    """Return the table of limits, lowered where fewer phrases are left; none is raised."""
    lines = ["# Phrases per 1,000 words: `python -m tests.language --lower` lowers them."]
    for room, kind in sorted(measures):
        known = kind in limits.get(room, {})
        rates = {}
        for phrase, most in MOST.items():
            rate = round(measures[room, kind].rate(phrase) + 0.05, 1)
            if known:
                rate = min(rate, limit_of(limits, room, kind, phrase))
            if rate > most:
                rates[phrase] = rate
        if rates:
            lines += ["", f'["{room}".{kind}]', *(f'"{k}" = {v}' for k, v in rates.items())]
    return "\n".join(lines).rstrip() + "\n"
