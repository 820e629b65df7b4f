"""Alerts of the terminal about questions for the user: bell, notification and window title."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import Final

from draftsman.formats.amounts import count_text
from draftsman.formats.invisible import one_line
from draftsman.questions.question import OpenQuestion
from draftsman.text import first_line
from draftsman_tui.dashboard.attention.attention import AttentionCount

KINDS: Final = ("bell", "notification", "title")
OSC_9: Final = frozenset({"iTerm.app", "WezTerm", "ghostty", "WarpTerminal"})
"""Values of TERM_PROGRAM of terminals that show OSC 9; others show OSC 777 or nothing."""
MAX_TEXT: Final = 120
"""Maximum characters of a notification."""
SAVE_TITLE: Final = "\x1b[22;2t"
RESTORE_TITLE: Final = "\x1b[23;2t"


class TerminalAlerts:
    """Writes alerts of the chosen kinds with `write`, which takes terminal sequences."""

    def __init__(self, write: Callable[[str], None], kinds: Collection[str] = KINDS) -> None:
        self._write = write
        self._kinds = kinds
        self._title: str | None = None

    def show(self, attention: AttentionCount) -> None:
        """Show the number of questions in the title, and new questions by bell and notification."""
        if "title" in self._kinds:
            self._show_title(title_text(attention))
        if not attention.new:
            return
        if "bell" in self._kinds:
            self._write("\a")
        if "notification" in self._kinds:
            self._write(_notification(_safe(notification_text(attention.new))))

    def close(self) -> None:
        """Restore the title of the terminal."""
        if self._title is not None:
            self._write(RESTORE_TITLE)

    def _show_title(self, text: str) -> None:
        if self._title is None:
            self._write(SAVE_TITLE)
        if text != self._title:
            self._title = text
            self._write(f"\x1b]2;{_safe(text)}\a")


def title_text(attention: AttentionCount) -> str:
    """Return the window title: `(3) draftsman`."""
    return f"({count_text(attention.mine)}) draftsman" if attention.mine else "draftsman"


def notification_text(new: Sequence[OpenQuestion]) -> str:
    """Return a line about new questions: `D-7/1 Tidy up: Which fixes?`."""
    if len(new) > 1:
        return f"{len(new)} questions for you: {', '.join(question.name for question in new)}"
    question = new[0]
    return f"{question.name} {question.title}: {first_line(question.text, MAX_TEXT)}"


def _notification(text: str) -> str:
    """Return the sequence of a notification, which tmux passes on to its terminal."""
    is_osc_9 = os.environ.get("TERM_PROGRAM") in OSC_9
    sequence = f"\x1b]9;{text}\a" if is_osc_9 else f"\x1b]777;notify;draftsman;{text}\a"
    if "TMUX" not in os.environ:
        return sequence
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"


def _safe(text: str) -> str:
    """Return a text that cannot end the sequence it is written in, or begin another field."""
    return one_line(text)[:MAX_TEXT].replace(";", ",")
