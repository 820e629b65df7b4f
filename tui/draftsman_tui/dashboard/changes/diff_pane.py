"""A patch with the tree of its files, and the line for a comment."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import ClassVar, Final

from rich.text import Text
from textual import on
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from draftsman.agent_runs.changes.diff_reader import DiffFile
from draftsman.errors import DraftsmanError
from draftsman.formats.invisible import one_line
from draftsman_tui.common.artifacts import printable
from draftsman_tui.dashboard.changes.diff_view import DiffView
from draftsman_tui.dashboard.changes.editor import editor_command, has_window, local_file
from draftsman_tui.dashboard.changes.patch import Patch
from draftsman_tui.terminal.output import plain

MAX_FILES: Final = 500
"""Files that the tree lists; the view has all."""
TreeRow = tuple[str, int | None]
"""A label, and the index of its file; None for a folder."""


def tree(files: Sequence[DiffFile], accepted: Collection[int] = ()) -> list[TreeRow]:
    """Return the rows of the tree, in the order of the patch."""
    rows: list[TreeRow] = []
    previous_folders: list[str] = []
    for nth, file in enumerate(files[:MAX_FILES]):
        *folders, name = file.path.split("/")
        common = 0
        for previous, folder in zip(previous_folders, folders, strict=False):
            if previous != folder:
                break
            common += 1
        rows += [(f"{'  ' * at}{folders[at]}/", None) for at in range(common, len(folders))]
        previous_folders = folders
        sign = "✓ " if nth in accepted else ""
        rows.append((f"{'  ' * len(folders)}{sign}{name} +{file.added} -{file.removed}", nth))
    if len(files) > MAX_FILES:
        rows.append((f"… and {len(files) - MAX_FILES} more", None))
    return rows


LARGE: Final = 500_000
"""Characters from which a patch is parsed beside the screen, which stays responsive."""
TREE_WIDTH: Final = 100
"""Columns from which the tree of the files is shown."""


class DiffPane(Vertical):
    """The diff viewer of gates, of questions and of the job screen, which searches by itself."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", show=False, id="search-diff"),
        Binding("e", "edit", "Edit", show=False, id="edit-file"),
    ]

    class Reviewed(Message):
        """A comment or an accepted file changed."""

    def __init__(
        self,
        text: str = "",
        *,
        gate: bool = False,
        reviews: bool = False,
        searches: bool = False,
        classes: str = "",
    ) -> None:
        super().__init__(classes=classes)
        self.source: str | None = None
        """The repository of the diff."""
        self._searches = searches
        self._sought = ""
        self._text = text
        self._view = DiffView(gate=gate, reviews=reviews)
        self._tree: list[TreeRow] = []
        self._line: int | None = None
        """The line, or -1 minus the index of the file, whose comment is edited."""

    def compose(self) -> ComposeResult:
        with Horizontal(classes="patch-panes"):
            yield OptionList(classes="files", compact=True)
            yield self._view
        yield Static("reading the diff …", classes="hint loading")
        yield Input(classes="line comment", placeholder="Comment; empty removes it")
        yield Input(classes="line search", placeholder="Search; empty: the next match")

    @property
    def view(self) -> DiffView:
        """The view of the patch."""
        return self._view

    async def on_mount(self) -> None:
        self.load(self._text)

    def load(self, text: str) -> None:
        """Show a patch from its beginning; a large patch follows when it is parsed."""
        self._text = text
        is_large = len(text) > LARGE
        self.set_class(is_large, "loading")
        if is_large:
            self.run_worker(self._load_later(text), group="patch", exclusive=True)
        else:
            self._show(Patch(printable(text)))

    def focus(self, scroll_visible: bool = True) -> DiffPane:
        """Focus the view."""
        self._view.focus(scroll_visible)
        return self

    def on_resize(self) -> None:
        self._show_tree()

    async def _load_later(self, text: str) -> None:
        patch = await asyncio.to_thread(lambda: Patch(printable(text)))
        self.remove_class("loading")
        self._show(patch)

    def _show(self, patch: Patch) -> None:
        self._view.replace(patch)
        self._draw_tree()

    def _draw_tree(self) -> None:
        files = self.query_one(".files", OptionList)
        self._tree = tree(self._view.patch.files, self._view.accepted)
        files.set_options(
            Option(Text(plain(label), no_wrap=True, overflow="ellipsis"), disabled=nth is None)
            for label, nth in self._tree
        )
        files.highlighted = self._row_of(self._view.current_file)
        self._show_tree()

    def _row_of(self, file: int) -> int | None:
        """Return the row of a file in the tree."""
        rows = (row for row, (_, nth) in enumerate(self._tree) if nth == file)
        return next(rows, None)

    def _show_tree(self) -> None:
        is_shown = len(self._view.patch.files) > 1 and self.size.width >= TREE_WIDTH
        self.query_one(".files", OptionList).display = is_shown

    @on(DiffView.Moved)
    def _moved(self, moved: DiffView.Moved) -> None:
        files = self.query_one(".files", OptionList)
        if files.display and not files.has_focus and self._view.length:
            with self.prevent(OptionList.OptionHighlighted):
                files.highlighted = self._row_of(self._view.current_file)

    @on(DiffView.Changed)
    def _changed(self, changed: DiffView.Changed) -> None:
        changed.stop()
        self._draw_tree()
        self.post_message(self.Reviewed())

    @on(DiffView.Noted)
    def _noted(self, noted: DiffView.Noted) -> None:
        noted.stop()
        self._line = noted.line
        line = self.query_one(".comment", Input)
        line.value = self._view.comments.get(noted.line, "")
        line.add_class("open")
        line.focus()

    @on(Input.Submitted, ".comment")
    def _commented(self, submitted: Input.Submitted) -> None:
        submitted.stop()
        if self._line is not None:
            self._view.set_comment(self._line, " ".join(submitted.value.split()))
        self.close_line()

    def action_search(self) -> None:
        """Ask for a text to go to."""
        line = self.query_one(".search", Input)
        line.value = ""
        line.add_class("open")
        line.focus()

    @on(Input.Submitted, ".search")
    def _search(self, submitted: Input.Submitted) -> None:
        """Go to the next match, after the last line to the first."""
        submitted.stop()
        self._sought = text = submitted.value or self._sought
        self.close_line()
        start = self._view.cursor
        if not text or self._view.find(text, 1):
            return
        self._view.move_to(0)
        if not self._view.find(text, 0):
            self._view.move_to(start)
            self.app.notify(f"no match of {text!r}", markup=False)

    def action_edit(self) -> None:
        """Open the local file in the editor of the person, at the line under the cursor."""
        try:
            self._edit()
        except SuspendNotSupported:
            self._refuse("this terminal cannot be left for an editor; use one with a window: code")
        except (DraftsmanError, OSError) as error:
            self._refuse(str(error))

    def _edit(self) -> None:
        if not self._view.length:
            return
        path, line = self._view.place
        file = local_file(Path.cwd(), path, self.source)
        command = editor_command(os.environ, file, line)
        if has_window(command):
            self.run_worker(self._open_window(command, f"{path}:{line}"))
            return
        with self.app.suspend():
            code = subprocess.run(command, check=False).returncode
        if code:
            self._refuse(f"{command[0]} ended with exit code {code}")

    async def _open_window(self, command: Sequence[str], place: str) -> None:
        """Open a file in an editor that needs no terminal."""
        nothing = asyncio.subprocess.DEVNULL
        try:
            editor = await asyncio.create_subprocess_exec(
                *command, stdin=nothing, stdout=nothing, stderr=nothing
            )
        except OSError as error:
            self._refuse(str(error))
            return
        self.app.notify(f"Opened {one_line(place)}", markup=False)
        if code := await editor.wait():
            self._refuse(f"{command[0]} ended with exit code {code}")

    def _refuse(self, text: str) -> None:
        self.app.notify(one_line(text), severity="error", timeout=10, markup=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the key of a search to a screen that searches."""
        return self._searches if action == "search" else True

    def close_line(self) -> bool:
        """Close the line for a comment or a search; False if none is open."""
        lines = [line for line in self.query(".line").results(Input) if line.has_class("open")]
        for line in lines:
            line.remove_class("open")
        self._line = None
        if lines:
            self._view.focus()
        return bool(lines)

    @on(OptionList.OptionSelected, ".files")
    def _selected(self, selected: OptionList.OptionSelected) -> None:
        selected.stop()
        nth = self._tree[selected.option_index][1]
        if nth is not None:
            self._view.go_to_file(nth)
            self._view.focus()
