"""Document of a message: what it says, without the markup of a medium. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from draftsman.formats.times import clock_with_zone, spelled_time
from draftsman.formats.truncation import ELLIPSIS, truncate
from draftsman.jobs.status_display import StatusDisplay
from draftsman.people.policy import Person
from draftsman.people.spans import ActorRef

LENGTH: Final = 2800
"""Maximum characters of most texts."""
LINES: Final = 30
"""Maximum lines of the context of a question."""
SHORT: Final = 300
"""Characters of a fact, and of a note."""


class Action(StrEnum):
    """What a person can do from a message."""

    APPROVE = "approve"
    DENY = "deny"
    REQUEST_CHANGES = "request_changes"
    CHOOSE = "choose"
    ANSWER = "answer"
    ACKNOWLEDGE = "acknowledge"
    SNOOZE = "snooze"
    DELEGATE = "delegate"
    CANCEL = "cancel"
    RETRY = "retry"
    DISMISS = "dismiss"
    REVISE = "revise"
    RATIFY = "ratify"
    DECLINE = "decline"


LABELS: Final = {
    Action.APPROVE: "Approve",
    Action.DENY: "Deny…",
    Action.REQUEST_CHANGES: "Request changes…",
    Action.CHOOSE: "Choose an answer",
    Action.ANSWER: "Answer with text…",
    Action.ACKNOWLEDGE: "I'm on it",
    Action.SNOOZE: "Snooze 2 h",
    Action.DELEGATE: "Delegate to…",
    Action.CANCEL: "Cancel job",
    Action.RETRY: "Retry",
    Action.DISMISS: "Dismiss",
    Action.REVISE: "Retry with changes…",
    Action.RATIFY: "Ratify",
    Action.DECLINE: "Decline",
}
"""Labels of controls; actions (`core/draftsman/actions/`) have them, too."""
KEPT: Final = "Work so far is kept."
"""What the cancel of a job keeps."""


@dataclass(frozen=True, slots=True)
class Control:
    """A control of a message; `confirm` is the question before it acts."""

    action: Action
    label: str
    confirm: str = ""


def control(action: Action, confirm: str = "") -> Control:
    """Return the control of an action, with its label."""
    return Control(action, LABELS[action], confirm)


@dataclass(frozen=True, slots=True)
class Time:
    """A time, which a medium may show in the time zone of its reader, as `today 17:00`.

    A date in full needs the preposition before it.
    """

    when: datetime
    preposition: str = ""

    def __str__(self) -> str:
        return f"{self.preposition} {spelled_time(self.when)}".lstrip()


def local_text(span: object) -> str:
    """Return a span for a terminal or an error: a time in the form of their sentences."""
    if not isinstance(span, Time):
        return str(span)
    return f"{'at ' if span.preposition else ''}{clock_with_zone(span.when)}"


@dataclass(frozen=True, slots=True)
class Link:
    """A link that shows its URL."""

    url: str

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True, slots=True)
class Strong:
    """Words in bold, at most 200 characters."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Command:
    """A command for a terminal, or another text as it is typed."""

    line: str

    def __str__(self) -> str:
        return self.line


@dataclass(frozen=True, slots=True)
class Step:
    """How to do something in the medium: by a control, in a reply, or by a command."""

    action: Action
    command: str
    choices: bool = False
    """Of an answer: whether a choice can be named by its number."""
    freeform: bool = True
    wanted: str = ""
    """What a free answer has to be, such as a whole number; "" for any text."""
    """Of an answer: whether it may be any text."""
    changes: bool = False
    """Of a decision: whether changes can be requested, too."""

    @property
    def is_answer(self) -> bool:
        """Whether it answers a question."""
        return self.action in (Action.APPROVE, Action.ANSWER)


Span = str | ActorRef | Time | Link | Strong | Command | Step
Text = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Headline:
    """The line of a job, or of a question, that begins a message."""

    mark: StatusDisplay
    name: str
    title: str
    verb: str = ""
    says: Text = ()
    """The words of the mark, for a medium without emoji."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Short facts in a line; the `state` is one that the headline of a medium may say."""

    items: tuple[Text, ...]
    state: Text = ()

    @property
    def all(self) -> tuple[Text, ...]:
        """The facts with the state."""
        return (self.state, *self.items) if self.state else self.items


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A text; `full` is where to read what a medium cuts off, unless another part says so."""

    text: Text
    most: int
    full: Command | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A short text beside the others, in a single line; `full` is that of a paragraph."""

    text: Text
    full: Command | None = None


@dataclass(frozen=True, slots=True)
class Quote:
    """A text of a person or an agent, in its words."""

    text: str
    most: int
    full: Command | None = None


@dataclass(frozen=True, slots=True)
class Code:
    """A text with fixed columns; one that `folds` is the first to go where a message is too long.

    `full` is where to read it then, or what is cut off; without it, another part says so.
    """

    text: str
    most: int
    language: str = ""
    folds: bool = False
    full: Command | None = None
    is_table: bool = False
    """Whether the first line has the names of columns, which are below each other."""


@dataclass(frozen=True, slots=True)
class InFile:
    """The notice that a file of the message has `what` is missing here."""

    what: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of a question, which can be named by its number."""

    label: str
    description: str = ""
    emoji: str = ""


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices of a question, in order; `full` is where to read those that are left out."""

    items: tuple[Choice, ...]
    full: Command


@dataclass(frozen=True, slots=True)
class Items:
    """Short texts in a list, the first of `total`; `full` is where to read all."""

    items: tuple[Text, ...]
    total: int
    full: Command


@dataclass(frozen=True, slots=True)
class TablePart:
    """Cells in columns, the first of `total` rows; `full` is where to read all.

    In words it has at most so many characters.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int
    most: int
    full: Command


@dataclass(frozen=True, slots=True)
class PicturePart:
    """What a picture shows, and its `url` or the `file` of a job."""

    text: str
    job: str
    url: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True)
class Addressees:
    """The people whom a message asks, and notifies."""

    people: tuple[Person, ...]


@dataclass(frozen=True, slots=True)
class Footer:
    """What ends a message: conditions, and how to answer."""

    items: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Controls:
    """Controls that stand together."""

    items: tuple[Control, ...]


Part = (
    Headline
    | Facts
    | Paragraph
    | Note
    | Quote
    | Code
    | InFile
    | Choices
    | Items
    | Addressees
    | Footer
    | Controls
)
RichPart = TablePart | PicturePart
Document = tuple[Part | RichPart, ...]


def is_cut(part: Part | RichPart) -> bool:
    """Return whether a medium shows the beginning of a part only."""
    match part:
        case Paragraph(text, most):
            return len("".join(map(str, text))) > most
        case Quote(text, most) | Code(text, most):
            return len(text) > most
        case Note(text):
            return len("".join(map(str, text))) > SHORT
        case _:
            return False


def more_items(part: Choices | Items, shown: int) -> Text:
    """Return the notice of those that are not shown, and where to read them; empty for none."""
    total = part.total if isinstance(part, Items) else len(part.items)
    hidden = total - shown
    return (f"… and {hidden:,} more: ", part.full) if hidden > 0 else ()


def elsewhere(part: Part, *, cut: bool = False) -> Text:
    """Return the notice where to read a text that is cut off here; empty for any other part.

    `cut`: the medium has cut it off, although it is short enough before its escapes.
    """
    is_in_file = isinstance(part, Code) and part.folds and is_cut(part)
    if not isinstance(part, Paragraph | Quote | Code | Note) or is_in_file:
        return ()
    return read_at(part.full) if cut or is_cut(part) else ()


def descriptions_at(choices: Choices) -> Text:
    """Return the notice where to read the descriptions of choices; empty if they have none."""
    if not any(choice.description for choice in choices.items):
        return ()
    return "To read what the choices mean: ", choices.full


def read_at(full: Command | None) -> Text:
    """Return the notice where to read what is cut off; empty without a place."""
    return ("Truncated. To read it: ", full) if full is not None else ()


def truncate_spans(spans: Iterable[Span], most: int, measure: Callable[[str], int] = len) -> Text:
    """Return the spans within a length of their plain text, with an ellipsis where it is cut."""
    fitting: list[Span] = []
    room = most
    for span in spans:
        length = measure(str(span))
        if length > room:
            is_words = isinstance(span, str) and room > 0
            fitting.append(truncate(str(span), room, measure) if is_words else ELLIPSIS)
            break
        fitting.append(span)
        room -= length
    return tuple(fitting)
