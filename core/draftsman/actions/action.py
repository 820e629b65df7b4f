"""What people can do to a job, question, queue, …: the declaration of an action, and its result.

A front end says how it asks for the arguments and for a confirmation, never what an action means.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, TypeVar

from draftsman.errors import CommandHint, Hint, Refused
from draftsman.formats.amounts import counted
from draftsman.ids import job_name, question_name
from draftsman.people import visibility
from draftsman.text import capitalized

if TYPE_CHECKING:
    from draftsman.deliveries.documents.document import Text
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

    REQUEST = "request"
    JOB = "job"
    QUESTION = "question"
    QUEUE = "queue"
    SCHEDULE = "schedule"
    TEMPLATE = "template"
    DECISION = "decision"
    GROUP = "group"
    RULE = "rule"
    DELIVERY = "delivery"
    REPO = "repository"
    BOARD = "board"
    ACCOUNT = "account"
    PERSON = "person"
    SYSTEM = "system"


NAMES: Final[Mapping[About, Callable[[Any], str]]] = {
    About.JOB: job_name,
    About.QUESTION: lambda row: question_name(*row),
    About.DECISION: lambda decision: decision.name,
    About.QUEUE: lambda name: f"queue {name!r}",
    About.GROUP: lambda name: f"group {name!r}",
    About.DELIVERY: lambda rows: counted(len(rows), "delivery", "deliveries"),
    About.REPO: lambda repo: f"repository {repo.full_name}",
    About.BOARD: lambda board: f"board {board.name}",
    About.ACCOUNT: lambda account: f"account {':'.join(account)}",
}
"""How a row is named in the words of its actions; others as `schedule nightly`."""


def name_of(about: About, row: Any) -> str:
    """Return the name of a row in questions, prompts and results."""
    name = NAMES.get(about)
    return f"{about} {row}" if name is None else name(row)


class Surface(StrEnum):
    """Where people act."""

    COMMANDS = "the command line"
    DASHBOARD = "the dashboard"
    CHAT = "texts in chats"
    CONTROLS = "controls of messages"
    PAGES = "pages in a browser"
    PROGRAMS = "tools of programs"


TERMINALS: Final = frozenset({Surface.COMMANDS, Surface.DASHBOARD})
TEXTS: Final = TERMINALS | {Surface.CHAT}
CHATS: Final = TEXTS | {Surface.CONTROLS}
EVERYWHERE: Final = CHATS | {Surface.PAGES}


@dataclass(frozen=True, slots=True)
class Call:
    """Who acts, and by which event; `window` are the seconds in which an effect can be undone.

    An event of a channel, such as a comment that arrives twice, acts once. `report` shows the
    progress of long work.
    """

    rt: Runtime
    actor: Actor
    event: str | None = None
    window: float = 0.0
    report: Callable[[str], object] = lambda text: None

    async def as_seen(self, about: About, row: Any) -> Call:
        """Return the call with the services that show the actor what they may see.

        Raises NotFound for a job, or a question of one, that the actor may not see.
        """
        if visibility.visible_repos(self.actor) is None:
            return self
        rt = self.rt.seen_by(self.actor)
        if about in (About.JOB, About.QUESTION):
            await rt.read_model.version(row if about is About.JOB else row[0])
        return replace(self, rt=rt)


@dataclass(frozen=True, slots=True)
class ActionResult(Generic[R_co]):
    """What an action did: `D-142 retried as D-143`; front ends add the command that may follow.

    `value` is the result of its service: a pending decision if the effect can still be undone.
    `detail` is the part of the sentence that only this row has, and `data` the JSON document if it
    is not the value. The `subject` is by default the name of the row; `warnings` are about what may
    follow.
    """

    says: str
    value: R_co
    detail: Text = ()
    then: CommandHint | None = None
    data: object = None
    subject: str = ""
    warnings: Sequence[str] = ()

    @property
    def document(self) -> object:
        """The JSON document."""
        return self.value if self.data is None else self.data

    def predicate(self) -> str:
        """Return the sentence about the row, with local times."""
        from draftsman.deliveries.documents.document import local_text

        return self.says + "".join(map(local_text, self.detail))

    @property
    def spans(self) -> Text:
        """What was done, as a sentence."""
        first, *rest = (f"{self.subject} {self.says}".strip(), *self.detail, ".")
        return capitalized(str(first), self.subject), *rest

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate()}".strip()


class RefusedWithData(Refused):
    """A refusal that has a JSON document: what was recorded or done all the same."""

    def __init__(self, message: str, data: object, *, hint: Hint | None = None) -> None:
        super().__init__(message, hint=hint)
        self.data = data


@dataclass(frozen=True, slots=True)
class Subject:
    """What an action is about, if its question says more than the name of the row.

    `note` replaces the consequence of the action; `lines` are to be read before the question.
    """

    what: str = ""
    note: str = ""
    lines: Sequence[str] = ()
    needs_question: bool = True


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The question before an action, and what follows; `lines` are to be read before."""

    text: str
    note: str
    lines: Sequence[str] = ()

    def __str__(self) -> str:
        return f"{self.text} {self.note}".rstrip()


@dataclass(frozen=True, slots=True)
class Arguments:
    """How the arguments of an action are typed after the name of its row."""

    usage: str = ""
    parse: Callable[[str], Mapping[str, Any]] = lambda text: {}
    """Returns the arguments of a text that is typed after the row; raises UsageError."""
    prompt: str = ""
    """What asks for them, with a place `{}` for the rows; "": the action acts without."""
    example: str = ""
    """Arguments, as a hint to the prompt."""
    choices: Callable[[Call, Any], Awaitable[Sequence[tuple[str, str]]]] | None = None
    """Returns labels and texts of all arguments; raises Refused if there are none."""
    asks_single: bool = True
    """Whether also a single choice is asked for."""


REASON: Final = Arguments("[REASON]", lambda text: {"reason": text})


@dataclass(frozen=True, slots=True, eq=False)
class Action(Generic[Row, P, R]):
    """A declared action; it is called with a `Call`, the row that it is about, and arguments."""

    name: str
    about: About
    run: Callable[Concatenate[Call, Row, P], Awaitable[ActionResult[R]]]
    help: str
    label: str
    """Its words on a control, and in a question for a confirmation."""
    surfaces: Set[Surface] = TERMINALS
    right: Verb | None = None
    """The permission that its service checks."""
    fits: Fit | None = None
    """The rows that it fits; None: any."""
    takes: Arguments = Arguments()
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
    check: Callable[..., Awaitable[Subject | None]] | None = None
    """Raises the refusals of the action, before its arguments and a confirmation are asked for.

    It takes the call, the row, and the arguments that are known.
    """
    row: Callable[[str], Any] | None = None
    """Returns the row of a typed text, of an action on what no list shows; raises UsageError."""

    @property
    def key(self) -> str:
        """Its name among all actions: `job.cancel`."""
        return f"{self.about}.{self.name}"

    def problem(self, row: Any) -> str:
        """Return why it does not fit a row, which has a `status`; "" if it fits."""
        return "" if self.fits is None else self.fits.problem(row)

    @property
    def is_confirmed(self) -> bool:
        """Whether also who names it in full confirms it; others confirm only what a key does."""
        return self.destroys or self.guarded

    def __call__(
        self, call: Call, row: Row, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[ActionResult[R]]:
        return self.run(call, row, *args, **kwargs)

    def typed(self, call: Call, row: Row, text: str) -> Awaitable[ActionResult[R]]:
        """Act with the arguments of a text; raises UsageError for an invalid one."""
        run: Callable[..., Awaitable[ActionResult[R]]] = self.run
        return run(call, row, **self.takes.parse(text))

    async def asked(self, call: Call, row: Row, **arguments: Any) -> Confirmation | None:
        """Return the question before it, None without one; raises the refusals of the action."""
        call = await call.as_seen(self.about, row)
        subject = await self.check(call, row, **arguments) if self.check is not None else None
        if not self.question or (subject is not None and not subject.needs_question):
            return None
        subject = subject or Subject()
        what = subject.what or name_of(self.about, row)
        return Confirmation(
            self.question.format(what), subject.note or self.consequence, subject.lines
        )

    def asks(self, names: Sequence[str], *, of: int = 0) -> str:
        """Return the question before it; `of` is the number of rows among which these fit.

        An action that asks none for a single row asks whether it acts on several.
        """
        question = self.question or f"{self.name.capitalize()} {{}}?"
        if len(names) <= 1 and of <= len(names):
            return question.format("".join(names))
        count = f"{len(names):,} of {of:,}" if of > len(names) else f"{len(names):,}"
        return question.format(f"{count} {self.about}s")


UNDO: Final = "undo"
"""The command of the dashboard that undoes an action in its undo window."""
ACTIONS: Final[dict[str, Action[Any, ..., Any]]] = {}
"""The actions of the modules that are imported, by their keys."""


def action(
    about: About, *, name: str = "", label: str = "", **fields: Any
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
            result = await act(await call.as_seen(about, row), row, *args, **kwargs)
            return result if result.subject else replace(result, subject=name_of(about, row))

        words = act.__name__.strip("_").replace("_", " ")
        declared = Action(
            name=name or words,
            about=about,
            run=run,
            help=(act.__doc__ or "").partition("\n")[0],
            label=label or words.capitalize(),
            **fields,
        )
        ACTIONS[declared.key] = declared
        return declared

    return declare


def listed(names: Sequence[str]) -> str:
    """Return the first names and the number of the rest."""
    hidden = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {hidden:,} more" if hidden > 0 else "")
