"""Dialogs of the whole dashboard: help, log of the processes, quit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Input, OptionList, Static

from draftsman_tui.dashboard.dialogs.base import Dialog, safe

NAME_WIDTH: Final = 19
"""Width of a command's name with its arguments; longer arguments follow the help."""
FILTERS: Final = (
    ("words  -word", "rows that contain, or do not contain, the word"),
    ("status:failed", "multiple: status:failed,dead_letter; also status:waiting"),
    ("repo:pay", "also agent:tidy  tag:urgent  source:slack  for:anna"),
    ("by:me", "by:anna; me is the current user, also in for:me"),
    ("age>1h  age<30m", "older than, newer than"),
    ("/time ?out/", "regular expression (RE2)"),
)
NAMED_ROWS: Final = (
    (":cancel D-1..D-3", "also D-1 D-7; then other arguments, such as a reason"),
    (":answer D-14/2 yes", "a question, or the only one of its job: :answer D-14 yes"),
)
TAIL_BYTES: Final = 65536
"""Bytes of the end of the log to show."""
CHOICES: Final = {
    "leave": "Leave the processes running, without a dashboard",
    "stop": "Stop all processes; running jobs resume later from their last checkpoint",
    "": "Stay in the dashboard",
}
"""Choices before quitting; enter takes the first, which ends no run."""
KEYS: Final = "lsg"
"""Keys of the choices before quitting."""


class HelpDialog(Dialog[None]):
    """Commands by group, and filters; `below` is the screen that has the commands."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,question_mark", "leave", "Back", show=False),
        Binding("slash", "search", "Search", show=False),
    ]

    def __init__(
        self, groups: Mapping[str, Sequence[tuple[str, str, str]]], below: Screen[Any]
    ) -> None:
        super().__init__("Commands", "/: search   : command   ctrl+p: find a command   esc: back")
        self._groups = groups
        self.below = below

    def body(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self._text(), classes="commands")
        yield Input(placeholder="words of a command, a key or its help", classes="search")

    def on_mount(self) -> None:
        self.query_one(Input).display = False

    def action_search(self) -> None:
        """Open the line of the search."""
        self.query_one(Input).display = True
        self.query_one(Input).focus()

    @property
    def is_searching(self) -> bool:
        """Whether keys are the words of a search."""
        return self.query_one(Input).has_focus

    def action_leave(self) -> None:
        """Close the search, or the help without one."""
        search = self.query_one(Input)
        if not search.display:
            super().action_leave()
            return
        search.value = ""
        search.display = False
        self.query_one(VerticalScroll).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self.query_one(".commands", Static).update(self._text(event.value.casefold().split()))

    def on_input_submitted(self) -> None:
        """Keep what was found, to scroll through it."""
        self.query_one(VerticalScroll).focus()

    def _text(self, words: Sequence[str] = ()) -> Table:
        """Return the commands with these words, and the filters; all without a word."""

        def has_words(*texts: str) -> bool:
            text = " ".join(texts).casefold()
            return all(word in text for word in words)

        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, style="bold")
        table.add_column(no_wrap=True)
        table.add_column()
        for group, all_lines in self._groups.items():
            lines = [item for item in all_lines if has_words(*item)]
            if lines:
                table.add_row()
                table.add_row(Text.assemble((group, "bold underline")))
            for keys, name, help in lines:
                name, _, takes = name.partition(" ")
                fits = len(name) + len(takes) < NAME_WIDTH
                description = Text(help) if fits else Text.assemble(help, (f"  {takes}", "italic"))
                label = Text.assemble(name, (f" {takes}", "italic")) if fits else Text(name)
                table.add_row(keys, label, description)
        for title, note, examples in (
            ("Names", "in place of rows", NAMED_ROWS),
            ("Filters", "entered after /", FILTERS),
        ):
            shown = [item for item in examples if has_words(*item)]
            if shown:
                table.add_row()
                table.add_row(Text.assemble((title, "bold underline")), Text(note))
            for example, explanation in shown:
                table.add_row("", Text(example), Text(explanation))
        if not table.row_count:
            table.add_row(f"No command has {' '.join(words)!r}. Esc shows all")
        return table


class LogDialog(Dialog[None]):
    """Tail of the log of the processes of `draftsman up`; follows the end unless scrolled up."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,enter", "leave", "Back", show=False)]

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), "following   esc: back")
        self._path = path
        self._shown_size = -1

    def body(self) -> ComposeResult:
        with VerticalScroll(classes="log"):
            yield Static(id="log")

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        self.set_interval(1.0, self._follow)
        self._follow()

    def _follow(self) -> None:
        try:
            size = self._path.stat().st_size
            text = "" if size == self._shown_size else tail(self._path, size)
        except OSError as error:
            size = -1
            text = f"{self._path}: {error.strerror}"
        if size == self._shown_size:
            return
        scroll = self.query_one(VerticalScroll)
        at_end = self._shown_size < 0 or scroll.scroll_offset.y >= scroll.max_scroll_y
        self._shown_size = size
        self.query_one("#log", Static).update(safe(text or "No log output yet"))
        if at_end:
            scroll.scroll_end(animate=False)


def tail(path: Path, size: int) -> str:
    """Return the complete lines in the last TAIL_BYTES of a file."""
    with path.open("rb") as file:
        file.seek(max(0, size - TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return "\n".join(lines[1:] if size > TAIL_BYTES else lines)


class QuitDialog(Dialog[str]):
    """Asks about the processes of `draftsman up`: returns `stop`, `leave`, or None to stay.

    A second Ctrl-C stops all.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s,ctrl+c", "choose('stop')", "Stop all", id="stop-all"),
        Binding("l", "choose('leave')", "Leave running", id="leave-running"),
        Binding("g", "choose('')", "Stay", id="go-on"),
    ]

    def __init__(self) -> None:
        super().__init__(
            "Leave the processes running, stop them all, or stay?",
            "l, enter: leave running   s, ctrl+c: stop all   g, esc: stay",
        )

    def body(self) -> ComposeResult:
        choices = zip(KEYS, CHOICES.values(), strict=True)
        yield OptionList(*(safe(f"{key}  {text}") for key, text in choices))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.action_choose(list(CHOICES)[event.option_index])

    def action_choose(self, choice: str) -> None:
        """Dismiss with the choice."""
        self.dismiss(choice or None)
