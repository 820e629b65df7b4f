"""What people can do to a job, question, queue, …: the declaration of an action, and its result.

A front end says how it asks for the arguments and for a confirmation, never what an action means.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, TypeVar

from draftsman.errors import CommandHint
from draftsman.people import visibility

if TYPE_CHECKING:
    from draftsman.deliveries.documents.document import Span, Text
    from draftsman.jobs.fits import Fit
    from draftsman.people.actor import Actor
    from draftsman.people.policy import Verb
    from draftsman.runtime import Runtime

P = ParamSpec("P")
Row = TypeVar("Row")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
MAX_NAMED: Final = 5
"""Rows that a text lists by name; the rest are counted."""


class About(StrEnum):
    """What an action changes."""

    JOB = "job"
    QUESTION = "question"
    QUEUE = "queue"
    SCHEDULE = "schedule"
    TEMPLATE = "template"
    GROUP = "group"
    RULE = "rule"
    DELIVERY = "delivery"
    REPO = "repository"
    BOARD = "board"
    ACCOUNT = "account"
    SYSTEM = "system"


class Surface(StrEnum):
    """Where people act."""

    COMMANDS = "the command line"
    DASHBOARD = "the dashboard"
    CHAT = "texts in chats"
    CONTROLS = "controls of messages"
    PAGES = "pages in a browser"


@dataclass(frozen=True, slots=True)
class Call:
    """Who acts, and by which event; `window` are the seconds in which an effect can be undone.

    An event of a channel, such as a comment that arrives twice, acts once.
    """

    rt: Runtime
    actor: Actor
    event: str | None = None
    window: float = 0.0

    async def require_visible(self, about: About, row: Any) -> None:
        """Raise NotFound for a job, or a question of one, that the actor may not see."""
        is_restricted = visibility.visible_repos(self.actor) is not None
        if is_restricted and about in (About.JOB, About.QUESTION):
            job = row if about is About.JOB else row[0]
            await self.rt.seen_by(self.actor).read_model.version(job)


@dataclass(frozen=True, slots=True)
class ActionResult(Generic[R_co]):
    """What an action did: `D-142 retried as D-143`; front ends add the command that may follow.

    `value` is the result of its service: a pending decision if the effect can still be undone.
    `detail` is the part of the sentence that only this row has.
    """

    subject: str
    says: str
    value: R_co
    detail: Text = ()
    then: CommandHint | None = None

    def predicate(self, show: Callable[[Span], str] = str) -> str:
        """Return the sentence about the row; `show` prints people and times in a medium."""
        return self.says + "".join(map(show, self.detail))

    @property
    def spans(self) -> Text:
        """What was done, as a sentence."""
        first, *rest = (f"{self.subject} {self.says}".strip(), *self.detail, ".")
        return str(first)[:1].upper() + str(first)[1:], *rest

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate()}".strip()


@dataclass(frozen=True, slots=True, eq=False)
class Action(Generic[Row, P, R]):
    """A declared action; it is called with a `Call`, the row that it is about, and arguments."""

    name: str
    about: About
    run: Callable[Concatenate[Call, Row, P], Awaitable[ActionResult[R]]]
    help: str
    label: str
    """Its words on a control, and in a question for a confirmation."""
    surfaces: frozenset[Surface]
    right: Verb | None = None
    """The permission that its service checks."""
    fits: Fit | None = None
    """The rows that it fits; None: any."""
    arguments: str = ""
    """How its arguments are typed after the name of the row."""
    prompt: str = ""
    """What asks for the arguments, with a place `{}` for the rows; "": it acts without."""
    example: str = ""
    """Arguments, as a hint to the prompt."""
    question: str = ""
    """The question before it, with a place `{}` for the rows; "": none is asked."""
    consequence: str = ""
    """What it changes and keeps, after the question."""
    destroys: bool = False
    """Whether it ends or removes something: also a control asks its question."""
    guarded: bool = False
    """Whether a program has to confirm it, too."""
    progress: str = ""
    """The word that shows progress with many rows: `Canceling`."""
    undo: str = ""
    """The name of the action that undoes it, or UNDO for one that is held for a window."""
    check: Callable[[Call, Any], Awaitable[None]] | None = None
    """Raises the refusals of the action, before its arguments are asked for."""
    parse: Callable[[str], Mapping[str, Any]] | None = None
    """Returns the arguments of a text that is typed after the row; raises UsageError.

    An action without it takes none.
    """

    @property
    def key(self) -> str:
        """Its name among all actions: `job.cancel`."""
        return f"{self.about}.{self.name}"

    def __call__(
        self, call: Call, row: Row, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[ActionResult[R]]:
        return self.run(call, row, *args, **kwargs)

    def typed(self, call: Call, row: Row, text: str) -> Awaitable[ActionResult[R]]:
        """Act with the arguments of a text; raises UsageError for an invalid one."""
        run: Callable[..., Awaitable[ActionResult[R]]] = self.run
        return run(call, row, **(self.parse(text) if self.parse is not None else {}))

    def asks(self, names: Sequence[str], *, of: int = 0) -> str:
        """Return the question before it; `of` is the number of rows among which these fit."""
        if len(names) <= 1 and of <= len(names):
            return self.question.format("".join(names))
        count = f"{len(names):,} of {of:,}" if of > len(names) else f"{len(names):,}"
        return self.question.format(f"{count} {self.about}s")


UNDO: Final = "undo"
"""The command of the dashboard that undoes an action in its undo window."""
ACTIONS: Final[dict[str, Action[Any, ..., Any]]] = {}
"""The actions of the modules that are imported, by their keys."""


def action(
    about: About,
    *,
    surfaces: Set[Surface],
    name: str = "",
    label: str = "",
    right: Verb | None = None,
    fits: Fit | None = None,
    arguments: str = "",
    prompt: str = "",
    example: str = "",
    question: str = "",
    consequence: str = "",
    destroys: bool = False,
    guarded: bool = False,
    progress: str = "",
    undo: str = "",
    check: Callable[[Call, Any], Awaitable[None]] | None = None,
    parse: Callable[[str], Mapping[str, Any]] | None = None,
) -> Callable[[Callable[Concatenate[Call, Row, P], Awaitable[ActionResult[R]]]], Action[Row, P, R]]:
    """Declare a function as an action, whose help is the first line of its docstring.

    The parameters are the fields of `Action`; its name and label are by default those of the
    function.
    """

    def declare(
        act: Callable[Concatenate[Call, Row, P], Awaitable[ActionResult[R]]],
    ) -> Action[Row, P, R]:
        async def run(
            call: Call, row: Row, /, *args: P.args, **kwargs: P.kwargs
        ) -> ActionResult[R]:
            await call.require_visible(about, row)
            return await act(call, row, *args, **kwargs)

        words = act.__name__.strip("_").replace("_", " ")
        declared = Action(
            name=name or words,
            about=about,
            run=run,
            help=(act.__doc__ or "").partition("\n")[0],
            label=label or words.capitalize(),
            surfaces=frozenset(surfaces),
            right=right,
            fits=fits,
            arguments=arguments,
            prompt=prompt,
            example=example,
            question=question,
            consequence=consequence,
            destroys=destroys,
            guarded=guarded,
            progress=progress,
            undo=undo,
            check=check,
            parse=parse,
        )
        ACTIONS[declared.key] = declared
        return declared

    return declare


def listed(names: Sequence[str]) -> str:
    """Return the first names and the number of the rest."""
    hidden = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {hidden:,} more" if hidden > 0 else "")
