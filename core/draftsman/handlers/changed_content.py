"""Keys that come again with another content: a warning the first time, then a failure. Pure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from types import CellType
from typing import Any, Final
from uuid import UUID

from draftsman.errors import UsageError
from draftsman.questions.question import Question, QuestionKind, QuestionStatus
from draftsman.questions.question_spec import QuestionSpec
from draftsman.text import first_line

_PLAIN: Final = (str, int, float, Decimal, date, timedelta, UUID, Enum, bytes)
"""Values that are the content of an effect; two equal objects of other types may differ."""
_SHOWN: Final = 300
_EFFECTS: Final = {"step": "gets the recorded result", "spawn": "gets the job of the first request"}


@dataclass(frozen=True, slots=True)
class ChangedContent:
    """A question, step or spawned job with the key of an earlier one, and another content."""

    what: str
    """`question`, `approval`, `step` or `spawn`."""
    key: str
    before: str
    now: str
    digest: str | None = None
    """The digest of the content now, if its text does not have all of it."""

    @property
    def payload(self) -> dict[str, Any]:
        """The payload of its event."""
        payload = {"what": self.what, "key": self.key, "before": self.before, "now": self.now}
        return payload if self.digest is None else payload | {"digest": self.digest}

    def __str__(self) -> str:
        effect = _EFFECTS.get(self.what, "is asked again")
        return f"{self.what} {self.key!r} came again with another content, and {effect}{self._both}"

    def refusal(self) -> UsageError:
        """Return the error of the third content in a row."""
        if self.what in _EFFECTS:
            remedy = f"give each {self.what} a key of its own, such as the key and what it works on"
        else:
            remedy = (
                "keep what changes, such as a time, out of it (ctx.now() is the same in each run),"
                " or give each question a key of its own"
            )
        return UsageError(
            f"{self.what} {self.key!r} came a third time with another content, without a step or"
            f" checkpoint between{self._both}; {remedy}"
        )

    @property
    def _both(self) -> str:
        before, now = (first_line(text, _SHOWN) for text in (self.before, self.now))
        return f": {before!r}, then {now!r}"


def earlier_questions(item: QuestionSpec, questions: Sequence[Question]) -> list[Question]:
    """Return the questions of a job that this one replaces, the newest first.

    An approval whose action or work changed is meant to come again, and replaces none.
    """
    closed = (QuestionStatus.ANSWERED, QuestionStatus.EXPIRED, QuestionStatus.SUPERSEDED)
    same = [each for each in questions if each.key == item.key and each.status in closed]
    earlier: list[Question] = []
    digest = item.digest
    for question in reversed(same):
        is_gate = QuestionKind.APPROVAL in (item.kind, question.kind)
        has_other_work = question.action != item.action or question.patch_sha256 is not None
        if question.digest == digest or (is_gate and has_other_work):
            break
        earlier.append(question)
        digest = question.digest
    return earlier


def changed_question(item: QuestionSpec, before: Question) -> ChangedContent:
    """Return the change of a question, with the choices if these changed."""
    texts = [before.text, item.text]
    if before.text == item.text:
        choices = [before.values(), [choice.value for choice in item.choices]]
        texts = [f"{item.text} ({', '.join(values) or 'free text'})" for values in choices]
    what = "approval" if item.kind is QuestionKind.APPROVAL else "question"
    return ChangedContent(what, item.key, *texts)


def effect_text(effect: Callable[..., Any]) -> str:
    """Return the content of a step: its function, and the plain values that it uses."""
    return " ".join(_parts(effect))


def _parts(effect: Any) -> Iterator[str]:
    """Yield the name of a function, and the plain values that it is bound to."""
    if isinstance(effect, functools.partial):
        for function in filter(callable, (effect.func, *effect.args)):
            yield from _parts(function)
        named = {str(place): value for place, value in enumerate(effect.args, 1)}
        yield from _plain_values(named | effect.keywords)
        return
    code = getattr(effect, "__code__", None)
    if code is None:
        yield type(effect).__qualname__
        return
    yield f"{effect.__module__}.{effect.__qualname__}:{code.co_firstlineno}"
    cells = effect.__closure__ or ()
    yield from _plain_values(dict(zip(code.co_freevars, cells, strict=True)))
    defaults = effect.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    yield from _plain_values(dict(zip(names, defaults, strict=True)))
    yield from _plain_values(effect.__kwdefaults__ or {})


def _plain_values(values: dict[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, CellType):
            with suppress(ValueError):  # a variable that has no value yet
                yield from _plain_values({name: value.cell_contents})
        elif isinstance(value, str | bytes) and len(value) > _SHOWN:
            yield f"{name}={value[:_SHOWN]!r}… ({len(value):,}, {hash(value)})"
        elif value is None or isinstance(value, _PLAIN):
            yield f"{name}={value!r}"
