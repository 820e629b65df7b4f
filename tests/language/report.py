"""Numbers of banned phrases by folder and kind of text, and the limits above the final limits."""

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
Limits = dict[str, dict[str, dict[str, int]]]
"""Maximum of each phrase by folder and kind of text, for folders above the final limits."""


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


def measure_folders(texts: Iterable[Text]) -> dict[tuple[str, Kind], Measure]:
    measures: dict[tuple[str, Kind], Measure] = defaultdict(Measure)
    for text in texts:
        measures[text.folder, text.kind].add(text)
    return measures


def read_limits() -> Limits:
    limits: Limits = tomllib.loads(LIMITS.read_text(encoding="utf-8"))
    return limits


def is_within(measure: Measure, phrase: str, limit: int) -> bool:
    """Return whether a folder keeps the final limit, or its own limit above that."""
    return measure.hits[phrase] <= max(limit, 1) or measure.rate(phrase) <= MOST[phrase]


def limit_of(limits: Limits, folder: str, kind: str, phrase: str) -> int:
    return limits.get(folder, {}).get(kind, {}).get(phrase, 0)


def lowered_limits(measures: dict[tuple[str, Kind], Measure], limits: Limits) -> str:
    """Return the limits, lowered for folders with fewer phrases; none is raised."""
    lines = ["# The most of each phrase; `python -m tests.language --lower` lowers the numbers."]
    for (folder, kind), measure in sorted(measures.items()):
        known = kind in limits.get(folder, {})
        most = {
            phrase: min(measure.hits[phrase], limit_of(limits, folder, kind, phrase))
            if known
            else measure.hits[phrase]
            for phrase in MOST
            if not is_within(measure, phrase, 0)
        }
        if most:
            lines += ["", f'["{folder}".{kind}]', *(f'"{k}" = {v}' for k, v in most.items())]
    return "\n".join(lines) + "\n"
