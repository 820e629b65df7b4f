"""Questions and approvals as values, which a context asks, alone or several at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Literal, TypedDict, Unpack, cast, overload

from typing_extensions import TypeForm, TypeVar

from draftsman.errors import Failure, UsageError
from draftsman.handlers.worker_run import build_ask
from draftsman.jobs import reserved_names
from draftsman.jobs.reserved_names import Owner
from draftsman.people.policy import Person
from draftsman.questions.answer_kind import AnswerKind
from draftsman.questions.answer_type import AnswerType, answer_type
from draftsman.questions.question import Answered, NoAnswer, OnDeny, OnExpire, QuestionKind
from draftsman.questions.question_spec import Choice, QuestionSpec

V = TypeVar("V", default=str | None)
R = TypeVar("R", covariant=True)


class AskOptions(TypedDict, total=False):
    """Options of a question."""

    choices: Sequence[str | Choice | dict[str, Any]]
    freeform: bool
    """Whether free text is accepted, too."""
    context: str | None
    """Information for the answer."""
    expires_in: float | None
    """Seconds; None: as configured."""
    never_expires: bool
    on_expire: OnExpire | str
    default: Any
    """The answer on expiry: a text, or a value of the type."""
    escalate_to: str | None
    """The group or person who is asked as well with `on_expire="escalate"`, once."""
    critical: bool
    """Whether it may interrupt people in their quiet hours."""


class ApproveOptions(TypedDict, total=False):
    """Options of an approval."""

    action: dict[str, Any] | None
    """What is approved: another action is asked again."""
    approvers: Sequence[str] | None
    quorum: int
    context: str | None
    expires_in: float | None
    on_expire: OnExpire | str
    escalate_to: str | None
    on_deny: OnDeny | str
    on_changes: Literal["refuse", "continue"]
    critical: bool


class Asking(ABC, Generic[R]):
    """A question or an approval, with its result."""

    spec: QuestionSpec

    @abstractmethod
    def result(self, recorded: Answered | NoAnswer, people: Mapping[str, Person]) -> R:
        """Return the result for the handler; `people` are those of the directory."""


class Ask(Asking["Answered[V] | NoAnswer"], Generic[V]):
    """A question for `ctx.ask_all`, with the arguments of `ctx.ask`."""

    @overload
    def __init__(
        self: Ask[str | None], key: str, text: str, **options: Unpack[AskOptions]
    ) -> None: ...

    @overload
    def __init__(
        self, key: str, text: str, *, type: TypeForm[V], **options: Unpack[AskOptions]
    ) -> None: ...

    def __init__(self, key: str, text: str, *, type: Any = None, **options: Any) -> None:
        """Raise UsageError for a question that cannot be asked, TypeError for another option."""
        reserved_names.check_key(key, Owner.HANDLER, "question")
        _check_options(AskOptions, options)
        self._type = None if type is None else answer_type(type)
        typed = {} if self._type is None else _typed_options(key, self._type, options)
        self.spec = build_ask(key=key, text=text, **{**options, **typed})

    def result(
        self, recorded: Answered | NoAnswer, people: Mapping[str, Person]
    ) -> Answered[V] | NoAnswer:
        """Return the answer with a value of the type."""
        if isinstance(recorded, NoAnswer):
            return recorded
        value: Any = recorded.value
        if self._type is not None:
            value = self._type.read(value or recorded.text or "", people)
        return replace(cast("Answered[V]", recorded), value=value)


class Approve(Asking[Answered]):
    """An approval for `ctx.ask_all`, with the arguments of `ctx.approve`."""

    def __init__(self, key: str, text: str, **options: Unpack[ApproveOptions]) -> None:
        """Raise UsageError for an approval that cannot be asked, TypeError for another option."""
        reserved_names.check_key(key, Owner.HANDLER, "approval")
        _check_options(ApproveOptions, options)
        if (on_changes := options.get("on_changes", "refuse")) not in ("refuse", "continue"):
            raise UsageError(
                f"approval {key!r}: on_changes is 'refuse' or 'continue', not {on_changes!r}"
            )
        self.spec = build_ask(key=key, kind=QuestionKind.APPROVAL, text=text, **options)

    def result(self, recorded: Answered | NoAnswer, people: Mapping[str, Person]) -> Answered:
        """Return the decision; raises Failure if there was none in time."""
        if isinstance(recorded, NoAnswer):
            text = f"approval {self.spec.key!r} expired without a decision"
            raise Failure(text, declared="PERMANENT")
        return recorded


def _check_options(allowed: type[Any], options: Mapping[str, Any]) -> None:
    """Raise TypeError for an option that the question does not have, as a call does."""
    names = list(allowed.__annotations__)
    if unknown := [name for name in options if name not in names]:
        raise TypeError(f"unexpected argument {unknown[0]!r}; allowed: {', '.join(names)}")


def _typed_options(key: str, type: AnswerType, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a question with a type; raises UsageError."""
    typed: dict[str, Any] = {"answer_kind": type.kind}
    if type.choices is not None or type.kind is AnswerKind.PERSON:
        if options.get("choices") or options.get("freeform"):
            raise UsageError(f"question {key!r}: its type has the choices; leave them out")
        typed["choices"] = tuple(type.choices or ())
    elif not options.get("choices"):
        typed["freeform"] = True
    if options.get("default") is not None:
        typed["default"] = type.write(options["default"])
    return typed
