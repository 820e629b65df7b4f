"""What the dialogs about a question share: who is asked, how long there is, who was first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from textual.binding import Binding, BindingType
from textual.widgets import Static

from draftsman.domain.question import Question
from draftsman.errors import Refused
from draftsman_tui.common.question_text import deadline_text
from draftsman_tui.dashboard.dialogs.base import Clock, Do, SubmitDialog, kept, local, safe

T = TypeVar("T")


class QuestionDialog(SubmitDialog[T]):
    """Counts down, and says so when somebody else was first; what was typed stays to be copied."""

    VERB: ClassVar[str] = "asks"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+y", "copy", "Copy", show=False, priority=True, id="copy-typed")
    ]

    def __init__(
        self,
        question: Question,
        who: str,
        do: Do[Any] = kept,
        *,
        clock: Clock = local,
        votes: Sequence[str] = (),
    ) -> None:
        super().__init__(do)
        self.question = question
        self.over = False
        """Whether nothing can be said any more."""
        self._late = False
        self._who = who
        self._clock = clock
        self._votes = tuple(votes)

    @property
    def typed(self) -> str:
        """What somebody wrote here and did not hand in."""
        return ""

    def on_mount(self) -> None:
        """Count."""
        self.set_interval(1.0, self.tick)
        self.tick()

    def tick(self) -> None:
        """Draw anew what tells the time."""
        if not self.over:
            self.query_one(".heading", Static).update(safe(self._heading()))

    def renew(self, question: Question, votes: Sequence[str]) -> None:
        """Take the question as it is now: with more time, escalated, with more votes."""
        self.question, self._votes = question, tuple(votes)
        self.tick()

    def close(self, how: str, *, late: bool = False) -> None:
        """Say how it ended; with nothing typed that would be lost, leave as well.

        What comes `late` can still be handed in: it is kept, and may be gone on with.
        """
        if self.over:
            return
        self.over = True
        if not self.typed:
            self.dismiss(None)
            return
        self.query_one(".heading", Static).update(safe(how))
        self._late = late
        then = "enter: hand it in late" if late else "nothing more can be said here"
        self.show_notice(f"{then}; ctrl+y: copy what you typed, esc: back")

    def attempt(self, given: object) -> None:
        """Hand it in, unless somebody else was first."""
        if self.over and not self._late:
            self.failed(Refused(f"{self.question.name} is closed; ctrl+y: copy what you typed"))
        else:
            super().attempt(given)

    def action_copy(self) -> None:
        """Copy what was typed."""
        if self.typed:
            self.app.copy_to_clipboard(self.typed)
            self.show_notice("copied what you typed")

    def _heading(self) -> str:
        asked = self.question
        parts = [f"{asked.name} {self.VERB} {self._who}", deadline_text(asked, self._clock())]
        if asked.quorum > 1:
            by = f": {', '.join(self._votes)}" if self._votes else ""
            parts.append(f"{len(self._votes)} of {asked.quorum} approved so far{by}")
        if asked.escalated_at is not None:
            parts.append(f"escalated to {asked.escalate_to}")
        return " · ".join(parts)
