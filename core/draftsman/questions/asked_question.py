"""Questions that a run asks, before they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from draftsman.questions.question_spec import QuestionSpec


@dataclass(frozen=True, slots=True)
class QuestionLadder:
    """The ladder of a question, as it is stored: its name and the fields of its steps."""

    name: str
    steps: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question of a run, maybe one of several that it asks at once.

    `answer` is that which was submitted with the request. `alternative_to` is the place, from
    1, of the first of several alternatives: the first of them that closes counts, and closes the
    others.
    """

    item: QuestionSpec
    answer: str | None = None
    alternative_to: int | None = None
