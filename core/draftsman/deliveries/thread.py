"""Jobs and questions that are the topics of places where people answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlaceTopic:
    """A job that posts to a place, such as a card or an issue, with a question asked there.

    `ref` is the reference of the question's message, None where it is unknown whether it exists.
    """

    job: int
    question: int | None
    ref: str | None
