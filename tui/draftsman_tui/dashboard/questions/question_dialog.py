"""Base class of the answer and approval dialogs: heading with deadline and votes, closing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Protocol, TypeVar

from textual import work
from textual.binding import Binding, BindingType
from textual.widgets import Input, Static, TextArea
from textual.widgets._toast import ToastRack

from draftsman.actions import questions
from draftsman.entities.questions import deadline_text
from draftsman.errors import DatabaseUnreachable, DraftsmanError, Refused
from draftsman.questions.question import Question
from draftsman_tui.dashboard.attention.question_holds import QuestionHolds
from draftsman_tui.dashboard.dialogs.base import Do, Heading, SubmitDialog, return_value, safe
from draftsman_tui.dashboard.dialogs.simple_dialogs import TextDialog
from draftsman_tui.dashboard.frame.connection import DatabaseClock
from draftsman_tui.dashboard.questions.key_guard import RELEASED, KeyGuard
from draftsman_tui.dashboard.questions.undo_window import UndoWindow
from draftsman_tui.dashboard.widgets.screen_lines import UndoLine

T = TypeVar("T")
HOLDS: Final = ("acknowledge", "snooze", "delegate")

TALLEST: Final = 0.96
"""Part of the screen that a dialog may fill, as in the style sheet."""
MIN_TEXT: Final = 3
"""Rows of the text of a question at least."""
MIN_WIDTH: Final = 40
"""Cells in which the keys are wrapped before the dialog has its size."""


def wrap_hints(hints: str, width: int) -> str:
    """Wrap lines of hints, which three spaces separate, without breaking a hint."""
    lines: list[str] = []
    for line in hints.splitlines():
        hints_of_line = line.split("   ")
        lines.append(hints_of_line[0])
        for hint in hints_of_line[1:]:
            joined = f"{lines[-1]}   {hint}"
            if len(joined) <= width:
                lines[-1] = joined
            else:
                lines.append(hint)
    return "\n".join(lines)


class Decisions(Protocol):
    """The part of a session that takes decisions."""

    undo: UndoWindow
    key_guard: KeyGuard


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionContext:
    """What a dialog shows and offers besides its question."""

    responders: str = ""
    """People who may answer."""
    votes: Sequence[str] = ()
    """People who have approved so far."""
    position: str = ""
    """Position in a review: `7 of 20`."""
    source: str | None = None
    """URL of the job's repository."""
    job_summary: str = ""
    """Title and repository of the job, its holder, and the jobs of an answer."""
    subject: str = ""
    """Replaces the name of the question and its responders in the heading."""
    clock: DatabaseClock = field(default_factory=DatabaseClock)
    session: Decisions | None = None
    """With a session, decisions can be undone in the dialog, and a key that was held before the
    dialog opened decides nothing."""
    holds: QuestionHolds | None = None
    """With holds, the question can be acknowledged, snoozed and delegated."""
    read_request: Callable[[], Awaitable[str]] | None = None
    """Returns the job's request."""


class QuestionDialog(SubmitDialog[T]):
    """Shows the deadline; keeps typed text for copying if the question closes meanwhile."""

    VERB: ClassVar[str] = "for"
    SHORT: ClassVar[str] = ""
    """What follows the name where the people do not fit."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+y", "copy", "Copy", show=False, priority=True, id="copy-typed"),
        Binding("s,ctrl+n", "skip", "Skip", show=False, id="skip"),
        Binding("u", "undo", "Undo", show=False, id="undo-last"),
        Binding("alt+u", "undo", "Undo", show=False, priority=True, id="undo-anywhere"),
        Binding("i", "acknowledge", "Acknowledge", show=False, id="acknowledge-it"),
        Binding("alt+i", "acknowledge", "Acknowledge", show=False, priority=True),
        Binding("I", "snooze", "Snooze", show=False, id="snooze-it"),
        Binding("alt+s", "snooze", "Snooze", show=False, priority=True),
        Binding("D", "delegate", "Delegate", show=False, id="delegate-it"),
        Binding("alt+g", "delegate", "Delegate", show=False, priority=True),
        Binding("t", "request", "Request", show=False, id="question-request"),
        Binding("alt+t", "request", "Request", show=False, priority=True),
    ]

    def __init__(
        self,
        question: Question,
        context: QuestionContext | None = None,
        do: Do[Any] = return_value,
    ) -> None:
        super().__init__(do)
        self.context = context or QuestionContext()
        self.skipped = False
        """Whether the question was left for later in a review."""
        self.answered = False
        """Whether an answer was accepted."""
        self.undone: tuple[str, ...] = ()
        """Questions whose answers were undone here."""
        self._shown_at = 0.0
        self.question = question
        self.closed = False
        self._late = False
        self._votes = tuple(self.context.votes)

    @property
    def typed(self) -> str:
        """Text that was not submitted."""
        return ""

    @property
    def is_typing(self) -> bool:
        """Whether letters go to a text field."""
        return isinstance(self.focused, (Input, TextArea))

    @abstractmethod
    def key_hints(self) -> str:
        """Return the lines of keys."""

    def on_descendant_focus(self) -> None:
        """Show the keys that work at the focus: beside a text field they are others."""
        self._show_keys()
        self._show_undo()

    def on_resize(self) -> None:
        """Wrap the keys between hints, and give the text the rows of the screen."""
        self._after_layout(self._show_keys)  # the box has its width then
        self._after_layout(self.fit_text)

    def _after_layout(self, show: Callable[[], None]) -> None:
        """Call a function when the dialog was laid out again, unless it was left meanwhile."""
        self.call_after_refresh(lambda: show() if self.is_current else None)

    @property
    def grown_rows(self) -> int:
        """Rows that the part below the text needs, of those that it takes if they are free."""
        return 0

    def fit_text(self) -> None:
        """Give the text the rows that the rest leaves, or a third where a diff needs them."""
        box = self.query_one(".box")
        text = self.query_one(".body")
        shown = [part for part in (*box.children, *self.query(ToastRack)) if part.display]
        rest = sum(
            part.outer_size.height + part.styles.margin.height
            for part in shown
            if part is not text and not part.has_class("grow")
        )
        room = round(self.size.height * TALLEST) - rest - box.gutter.height
        most = max(MIN_TEXT, room - self.grown_rows, room // 3)
        now = text.styles.max_height
        if now is None or now.value != most:
            text.styles.max_height = most
            self._after_layout(self.fit_text)  # the rest may have been laid out meanwhile

    def _show_keys(self) -> None:
        width = max(MIN_WIDTH, self.query_one(".box").content_size.width)
        self.query_one(".keys", Static).update(safe(wrap_hints(self.key_hints(), width)))

    def on_mount(self) -> None:
        if self.context.session is not None:
            pause = RELEASED if self.context.position else 0
            self._shown_at = self.context.session.key_guard.clock() + pause
        self.set_interval(1.0, self.tick)
        self.tick()

    def tick(self) -> None:
        """Redraw the deadline."""
        if not self.closed:
            short = "" if self.context.subject else self._heading(people=False).partition("\n")[0]
            self.query_one(Heading).show(self._heading(), short)
        self._show_undo()
        self._after_layout(self.fit_text)

    def _show_undo(self) -> None:
        if self.context.session is not None:
            line = self.query_one(UndoLine)
            width = self.query_one(".box").content_size.width - 2  # its padding
            line.show(
                self.context.session.undo.text(self._key("u", "alt+u"), max(MIN_WIDTH, width))
            )

    def update_question(self, question: Question, votes: Sequence[str]) -> None:
        """Apply a changed deadline, escalation or votes."""
        self.question = question
        self._votes = tuple(votes)
        self.tick()

    def close(self, text: str, *, late: bool = False) -> None:
        """Show how the question closed; dismiss the dialog if nothing was typed.

        In a review it stays until a key, for the next question must not come under the fingers.
        With `late`, a typed answer can still be submitted, to retry the job with it. Has no effect
        during a submission, which may be the cause.
        """
        if self.closed or self.busy:
            return
        self.closed = True
        if not self._stays:
            if self.app.screen is self:  # else `on_screen_resume` dismisses it
                self.dismiss(None)
            return
        self.query_one(Heading).show(text)
        self._late = late and bool(self.typed)
        hint = "enter: submit late" if self._late else "no more answers are accepted"
        self.show_notice(f"{hint}; {self._way_on()}")
        self._show_keys()

    @property
    def _stays(self) -> bool:
        """Whether a dialog whose question closed is still needed."""
        return bool(self.typed or self.context.position)

    def _way_on(self) -> str:
        """Return the keys that are left in a dialog whose question closed."""
        copy = "ctrl+y: copy your text" if self.typed else ""
        way = self._skip_hint() if self.context.position else "esc: back"
        return ", ".join(filter(None, (copy, way)))

    def on_screen_resume(self) -> None:
        """Dismiss the dialog if its question closed below another dialog."""
        if self.closed and not self._stays:
            self.dismiss(None)

    def attempt(self, value: object) -> None:
        """Submit, unless the question is closed."""
        if self.closed and not self._late:
            self.failed(Refused(f"{self.question.name} is closed; {self._way_on()}"))
        elif not self._is_meant():
            self.show_notice(f"{self.question.name} has just opened; press the key again")
        else:
            super().attempt(value)

    def failed(self, error: DraftsmanError) -> None:
        """Show why the submission failed; without a database, that it can be repeated."""
        lost = isinstance(error, DatabaseUnreachable)
        self.show_notice(f"not confirmed, answer again: {error}" if lost else str(error))

    @contextmanager
    def _errors_noticed(self) -> Iterator[None]:
        """Show an error of the block in the dialog."""
        try:
            yield
        except DraftsmanError as error:
            self.show_notice(str(error))

    def _is_meant(self) -> bool:
        """Return whether the last key was pressed for this question."""
        session = self.context.session
        return session is None or session.key_guard.is_pressed_since(self._shown_at)

    async def action_undo(self) -> None:
        """Undo the newest decision; in a review, its question opens again."""
        if self.context.session is None or self.busy:
            return
        with self._errors_noticed():
            await self._undo(self.context.session.undo)

    async def _undo(self, window: UndoWindow) -> None:
        batch = await window.undo()
        if batch is None:
            self.show_notice("nothing to undo")
            return
        self.undone = tuple(decision.name for decision in batch.decisions)
        if self.context.position:
            self.dismiss(None)
        else:
            self.tick()
            self.show_notice(f"undone: {batch.text}")

    async def action_acknowledge(self) -> None:
        """Tell others that the user works on the answer; the dialog stays open for it."""
        if self.context.holds is not None:
            with self._errors_noticed():
                self.show_notice(await self.context.holds.act(questions.acknowledge))

    def action_snooze(self) -> None:
        """Ask for how long the user gets no reminders; in a review, the next question follows."""
        if self.context.holds is not None:
            self.app.push_screen(self.context.holds.prompt(questions.snooze), self._held)

    def action_delegate(self) -> None:
        """Ask for the person who answers instead; in a review, the next question follows."""
        if self.context.holds is not None:
            self.app.push_screen(self.context.holds.prompt(questions.delegate), self._held)

    def _held(self, message: str | None) -> None:
        if not message:
            return
        self.app.notify(message, markup=False)
        if self.context.position and not self.typed:
            self.action_skip()
        else:
            self.show_notice(message)

    @work
    async def action_request(self) -> None:
        """Show the request of the job."""
        if self.context.read_request is not None:
            with self._errors_noticed():
                text = await self.context.read_request()
                self.app.push_screen(TextDialog(f"Request of D-{self.question.job}", text))

    def action_skip(self) -> None:
        """Leave the question for later; in a review, the next follows."""
        if self.context.position and not self.busy:
            self.skipped = True
            self.dismiss(None)

    def hints(self, *keys: str) -> str:
        """Return the lines of keys, with those of a review."""
        first = [] if self.closed else [*keys]
        if self.context.read_request is not None:
            first.append(f"{self._key('t', 'alt+t')}: request")
        if not self.context.position:
            return "   ".join([*first, "esc: back"])
        holds = [] if self.closed else self._hold_hint()
        second = [*holds, self._skip_hint(), "esc: end review"]
        return "\n".join("   ".join(row) for row in (first, second))

    def _skip_hint(self) -> str:
        """Return the key that leads to the next question of a review."""
        return f"{self._key('s', 'ctrl+n')}: {'next question' if self.closed else 'skip'}"

    def _key(self, key: str, key_of_text: str) -> str:
        """Return a key, or that beside a text field."""
        return key_of_text if self.is_typing else key

    def _hold_hint(self) -> list[str]:
        """Return the keys that have the question wait."""
        if self.context.holds is None:
            return []
        keys = ("alt+i", "alt+s", "alt+g") if self.is_typing else ("i", "I", "D")
        return [f"{key}: {verb}" for key, verb in zip(keys, HOLDS, strict=True)]

    def action_copy(self) -> None:
        """Copy the typed text."""
        if self.typed:
            self.app.copy_to_clipboard(self.typed)
            self.show_notice("Copied your text")

    def _heading(self, *, people: bool = True) -> str:
        """Return the heading, also without the people who may answer, for a narrow screen."""
        question = self.question
        context = self.context
        if context.subject:
            subject = context.subject
        elif people:
            subject = f"{question.name} {self.VERB} {context.responders}"
        else:
            subject = f"{question.name}{self.SHORT}"
        facts = [context.position, subject, deadline_text(question, context.clock.now)]
        if question.quorum > 1:
            by = f": {', '.join(self._votes)}" if self._votes else ""
            facts.append(f"{len(self._votes)} of {question.quorum} approved so far{by}")
        if question.escalated_at is not None:
            facts.append(f"escalated to {question.escalate_to}")
        heading = " · ".join(filter(None, facts))
        return "\n".join(filter(None, (heading, context.job_summary)))
