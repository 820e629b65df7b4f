"""Types of answers: `type=` of a question, as choices or as a kind of free answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any, Final, Literal, get_args, get_origin

from draftsman.errors import UsageError
from draftsman.people.policy import Person
from draftsman.questions.answer_kind import AnswerKind

_KINDS: Final[Mapping[Any, AnswerKind]] = {
    str: AnswerKind.TEXT,
    int: AnswerKind.INTEGER,
    float: AnswerKind.NUMBER,
    Decimal: AnswerKind.NUMBER,
    date: AnswerKind.DATE,
    Person: AnswerKind.PERSON,
}
_READERS: Final[Mapping[Any, Callable[[str], Any]]] = {date: date.fromisoformat, Person: str}
_ALLOWED: Final = "str, int, float, Decimal, date, bool, Person, a Literal or an Enum"
_YES_OR_NO: Final = {"yes": True, "no": False}


@dataclass(frozen=True, slots=True)
class AnswerType:
    """How the answers of a type are asked for, and read."""

    kind: AnswerKind
    choices: Mapping[str, Any] | None
    """The values of the type by the text of their choices; None for a free answer."""
    _read: Callable[[str], Any]

    def read(self, answer: str, people: Mapping[str, Person]) -> Any:
        """Return a stored answer as a value of the type; `people` are those of the directory."""
        if self.choices is not None:
            return self.choices[answer]
        if self.kind is AnswerKind.PERSON:
            return people.get(answer) or Person(answer, frozenset())
        return self._read(answer)

    def write(self, value: Any) -> str:
        """Return a value of the type, or its text, as it is stored."""
        if isinstance(value, str) and not isinstance(value, Enum):
            return value
        for text, each in (self.choices or {}).items():
            if each is value or (type(each) is type(value) and each == value):
                return text
        return value.isoformat() if isinstance(value, date) else str(value)


def answer_type(annotation: Any) -> AnswerType:
    """Return the type of answers; raises UsageError for one that people cannot answer."""
    if annotation in _KINDS:
        return AnswerType(_KINDS[annotation], None, _READERS.get(annotation, annotation))
    if annotation is bool:
        return AnswerType(AnswerKind.TEXT, _YES_OR_NO, str)
    if get_origin(annotation) is Literal:
        return _of_values(annotation, [(str(value), value) for value in get_args(annotation)])
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _of_values(annotation, [(_name(member), member) for member in annotation])
    name = getattr(annotation, "__name__", None) or str(annotation)
    raise UsageError(f"type={name}: no type of an answer; allowed: {_ALLOWED}")


def _of_values(annotation: Any, values: list[tuple[str, Any]]) -> AnswerType:
    choices = dict(values)
    if len(choices) < len(values):
        raise UsageError(f"type={annotation}: two of its values have the same text")
    return AnswerType(AnswerKind.TEXT, choices, str)


def _name(member: Enum) -> str:
    """Return the text of a choice: the value if it is a text, else the name."""
    return member.value if isinstance(member.value, str) else member.name
