"""Dialog to decide an approval, with its text and diff."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Input, Static

from draftsman.agent_runs.changes.review import Review
from draftsman.deliveries.action_text import action_text
from draftsman.deliveries.question_text import visible_context
from draftsman.questions.question import Decision, Question
from draftsman_tui.dashboard.changes.diff_pane import DiffPane
from draftsman_tui.dashboard.dialogs.base import Do, Heading, return_value, safe
from draftsman_tui.dashboard.questions.question_dialog import QuestionContext, QuestionDialog
from draftsman_tui.dashboard.widgets.screen_lines import UndoLine

LOW: Final = 32
"""Rows of the screen below which an approval has no blank lines beside its diff."""


@dataclass(frozen=True, slots=True)
class ReviewVerdict:
    """A decision with its reason, or with what to change, and comments `FILE:LINE=TEXT`."""

    decision: Decision
    text: str
    comments: Sequence[str] = ()


class ApprovalDialog(QuestionDialog[Any]):
    """Submits a `ReviewVerdict`. Enter does not decide, and the keys are far apart."""

    VERB = "needs approval from"
    SHORT = " needs approval"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+a,y", "decide('approve')", "Approve", id="approve-it"),
        Binding("ctrl+x,n", "decide('deny')", "Deny", id="deny-it"),
        Binding("w", "decide('request_changes')", "Request changes", id="request-changes-of-it"),
        Binding("r", "reason", "Reason", id="reason"),
        Binding("c", "since", "Since the last review", id="since-approval"),
    ]

    def __init__(
        self,
        question: Question,
        context: QuestionContext | None = None,
        do: Do[Any] = return_value,
        *,
        diff: str | None = None,
        review: Review | None = None,
        decision: Decision | None = None,
        reason: str = "",
    ) -> None:
        super().__init__(question, context, do)
        self._patch = (
            DiffPane(diff, gate=True, reviews=True, searches=True, classes="grow") if diff else None
        )
        if self._patch is not None:
            self._patch.source = self.context.source
        self._diff = diff
        self._review = review
        self._since = False
        """Whether only the changes since the last review are shown."""
        self._no_diff_text = "" if diff is None else "no changes so far"
        self._decision = decision
        self._reason = reason

    @property
    def typed(self) -> str:
        return self._said if self._patch is None else self._patch.view.review_text(self._said)

    @property
    def _said(self) -> str:
        """The text of the line below the diff."""
        return self.query_one(".reason", Input).value.strip()

    def compose(self) -> ComposeResult:
        question = self.question
        with Vertical(classes=f"box tall wide {self._low}" if self._patch else "box"):
            yield Heading()
            with VerticalScroll(classes="body", can_focus=not self._patch):
                yield Static(safe(question.text))
                if question.context_snippet:
                    yield Static(safe(visible_context(question)), classes="quiet apart")
                if self._review is not None and (requested := self._review.requested):
                    text = f"{requested.heading}:\n{requested.text}"
                    yield Static(safe(text), classes="apart")
                if question.action:
                    text = f"If approved: {action_text(question.action)}"
                    yield Static(safe(text), classes="apart")
            if self._patch is None:
                yield Static(safe(self._no_diff_text), classes="hint")
            else:
                yield self._patch
            if changes := self._changes_text():
                yield Static(safe(changes), classes="hint changes")
            placeholder = "Reason (optional, recorded)"
            if question.takes_changes:
                placeholder = "Reason (optional, recorded), or what to change"
            classes = "reason used" if self._reason else "reason"
            yield Input(self._reason, placeholder=placeholder, classes=classes)
            yield Static(classes="error")
            yield UndoLine()
            yield Static(classes="hint keys")

    def on_mount(self) -> None:
        self._focus_body()

    @property
    def _low(self) -> str:
        """The class of a screen whose rows all go to the diff."""
        return "low" if self.app.size.height < LOW else ""

    def on_resize(self) -> None:
        """Give the rows of a low screen to the diff."""
        self.query_one(".box").set_class(bool(self._patch and self._low), "low")

    @property
    def grown_rows(self) -> int:
        return 0 if self._patch is None else self._patch.view.length

    def action_decide(self, verdict: str) -> None:
        decision = Decision(verdict)
        if self._decision not in (None, decision):
            return
        if decision is not Decision.REQUEST_CHANGES:
            self.attempt(ReviewVerdict(decision, self.typed))
        elif self.question.takes_changes:
            comments = [] if self._patch is None else self._patch.view.review_comments()
            if not self._said and not comments:
                self.action_reason()
                return
            self.attempt(ReviewVerdict(decision, self._said, comments))

    def action_reason(self) -> None:
        line = self.query_one(".reason", Input)
        line.add_class("used")
        line.focus()

    def action_leave(self) -> None:
        """Close the line of a comment, or the dialog."""
        if self._patch is None or not self._patch.close_line():
            self.dismiss(None)

    def action_since(self) -> None:
        """Switch between all changes and those since the last review."""
        if self._patch is None or self._review is None or not self._review.since_patch:
            return
        self._since = not self._since
        self._patch.load(self._review.since_patch if self._since else self._diff or "")
        self.query_one(".changes", Static).update(safe(self._changes_text()))

    def _changes_text(self) -> str:
        """Return the counts of the changes, and the key that switches them."""
        review = self._review
        if review is None or not review.summary:
            return ""
        if not review.since_patch or self._patch is None:
            return review.summary
        if self._since:
            return f"showing the changes since {review.since}; c: all changes"
        return f"{review.summary}; c: only since {review.since}"

    def on_input_submitted(self) -> None:
        self._focus_body()

    def _focus_body(self) -> None:
        (self._patch or self.query_one(".body")).focus()

    def key_hints(self) -> str:
        if self.is_typing:
            deciding = "y, w or n" if self.question.takes_changes else "y or n"
            return self.hints(f"enter: done, then {deciding}")
        keys = {Decision.APPROVE: "y: approve", Decision.DENY: "n: deny"}
        if self.question.takes_changes:
            keys[Decision.REQUEST_CHANGES] = "w: request changes"
        hints = list(keys.values()) if self._decision is None else [keys[self._decision]]
        if self._patch is not None:
            hints.append(
                "[ ]: file   { }: hunk   /: search   | : sides   e: editor   enter: fold"
                "   m: comment   v: accept the file"
            )
        return self.hints(*hints, "r: reason")
