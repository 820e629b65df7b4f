"""Choices of permission requests, described in words of draftsman's own.

The answer is the value, but people read labels and descriptions, and those are the agent's: it
could describe `allow once` as a denial.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from draftsman.questions.question_spec import Choice

_ALWAYS: Final = "this call and calls like it, without further questions"
_NEVER: Final = "neither this call nor calls like it, without further questions"
ALLOWING: Final = {
    "allow once": "this call, a single time",
    "allow for this job": "the same tool with the same input, without further questions",
    "allow": "the agent makes this call",
    **dict.fromkeys(("allow always", "always allow"), _ALWAYS),
}
REFUSING: Final = {
    **dict.fromkeys(
        ("deny", "deny once", "reject", "reject once"), "the agent continues without this call"
    ),
    **dict.fromkeys(("deny always", "reject always"), _NEVER),
}
_KINDS: Final = ALLOWING | REFUSING
_QUOTES: Final = str.maketrans(dict.fromkeys('"“”„«»', "'"))
_MAX_QUOTED: Final = 300


def described(choices: Sequence[Choice]) -> tuple[Choice, ...]:
    """Return the choices of a question, with draftsman's words for those of a permission request.

    A permission request has a known choice that allows and a known choice that refuses. Other
    words of the agent are quoted, and its emoji are left out.
    """
    kinds = {_kind(choice.value) for choice in choices}
    if kinds.isdisjoint(ALLOWING) or kinds.isdisjoint(REFUSING):
        return tuple(choices)
    return tuple(_described(choice) for choice in choices)


def is_reworded(choices: Sequence[Choice]) -> bool:
    """Return whether the agent gave the known choices words or emoji of its own."""
    return any(
        choice.emoji is not None or _own_words(choice)
        for choice in choices
        if _kind(choice.value) in _KINDS
    )


def _described(choice: Choice) -> Choice:
    kind = _kind(choice.value)
    if kind not in _KINDS:
        return choice
    quoted = _own_words(choice)[:_MAX_QUOTED]
    text = f'{_KINDS[kind]}; the agent: "{quoted}"' if quoted else _KINDS[kind]
    return choice.model_copy(update={"label": kind, "description": text, "emoji": None})


def _own_words(choice: Choice) -> str:
    """Return the words of the agent for a known choice; empty if they are those of draftsman."""
    kind = _kind(choice.value)
    label = "" if _kind(choice.label) == kind else _plain(choice.label)
    description = _plain(choice.description or "")
    return " · ".join(filter(None, (label, "" if description == _KINDS[kind] else description)))


def _kind(value: str) -> str:
    return " ".join(value.casefold().replace("_", " ").replace("-", " ").split())


def _plain(text: str) -> str:
    """Return a text on a line of its own, without quotation marks that would end its quotation."""
    return " ".join(text.translate(_QUOTES).split())
