"""Diff viewer with a cursor, line numbers, syntax colors, folded files and comments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Final

from pygments.lexer import Lexer
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from draftsman.agent_runs.changes.shown_code import shown_code
from draftsman_tui.dashboard.changes import patch as patches
from draftsman_tui.dashboard.changes.patch import MAX_LINE, Patch, PatchRow, PatchRows, SideRows
from draftsman_tui.dashboard.changes.word_diff import Span, changed_words
from draftsman_tui.dashboard.widgets.cursor_list import CursorList
from draftsman_tui.terminal.output import plain

ROLES: Final = ("comment", "keyword", "string", "number", "name")
"""Roles of the parts of a line; other parts have the role ""."""
MAX_LENGTH: Final = 500
"""Longest line that is colored, in characters."""
SIDE_BY_SIDE: Final = 160
"""Columns of the screen from which removed lines are beside added lines."""
MAX_BESIDE: Final = 50_000
"""Lines of a patch that is side by side without being asked for."""
Part = tuple[str, str]
"""A text and its role; `changed` before a role marks a word that the other line does not have."""
CHANGED: Final = "changed "


@lru_cache(maxsize=4096)
def colored(file: str, line: str) -> tuple[Part, ...]:
    """Return the parts of a line with their roles, by the name of its file.

    A line is read by itself, so that a part of a large file costs no more than it shows: the inside
    of a text over several lines is colored as code.
    """
    lexer = _lexer(file.rpartition("/")[2])
    if lexer is None or not line or len(line) > MAX_LENGTH:
        return ((line, ""),)
    tokens = [(text, _role(str(token))) for token, text in lexer.get_tokens(line) if text]
    read = "".join(text for text, _ in tokens).removesuffix("\n")
    return tuple(tokens) if read == line else ((line, ""),)


@lru_cache(maxsize=64)
def _lexer(name: str) -> Lexer | None:
    from pygments.lexers import get_lexer_for_filename  # deferred, since importing it is slow
    from pygments.util import ClassNotFound

    try:
        return get_lexer_for_filename(name, ensurenl=False, stripnl=False)
    except ClassNotFound:
        return None


def _role(token: str) -> str:
    """Return the role of a token by its type, as `Token.Literal.String.Double`."""
    kinds = token.split(".")
    if "Comment" in kinds:
        return "comment"
    if "Keyword" in kinds or "Word" in kinds:
        return "keyword"
    if "String" in kinds:
        return "string"
    if "Number" in kinds:
        return "number"
    return "name" if kinds[-1] in ("Function", "Class", "Decorator", "Tag") else ""


def marked(parts: Sequence[Part], spans: Sequence[Span]) -> list[Part]:
    """Return the parts of a line, split where words have changed."""
    marks = [*spans]
    result: list[Part] = []
    at = 0
    for text, role in parts:
        cuts = {edge - at for span in marks for edge in span if at < edge < at + len(text)}
        edges = [0, *sorted(cuts), len(text)]
        for start, end in pairwise(edges):
            is_changed = any(first <= at + start < last for first, last in marks)
            result.append((text[start:end], f"{CHANGED if is_changed else ''}{role}"))
        at += len(text)
    return result


_KINDS: Final = {"+": "plus", "-": "minus", "@": "hunk", "\\": "hunk"}


class DiffView(CursorList):
    """A patch. In a gate, whose dialog has `n` for a denial, hunks have the keys { and } only."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"patch--{part}" for part in ("head", "plus", "minus", "hunk", "gutter", "note")),
        *(f"patch--{part}" for part in ("cursor", "plus-word", "minus-word", *ROLES)),
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup,b,ctrl+b", "page(-1)", "Page up", show=False, id="page-up"),
        Binding("pagedown,space,ctrl+f", "page(1)", "Page down", show=False, id="page-down"),
        Binding("right_square_bracket", "file(1)", "Next file", show=False, id="next-file"),
        Binding("left_square_bracket", "file(-1)", "Previous file", show=False, id="previous-file"),
        Binding("right_curly_bracket", "hunk(1)", "Next hunk", show=False, id="next-hunk"),
        Binding("left_curly_bracket", "hunk(-1)", "Previous hunk", show=False, id="previous-hunk"),
        Binding("n", "short_hunk(1)", "Next hunk", show=False),
        Binding("N", "short_hunk(-1)", "Previous hunk", show=False),
        Binding("enter", "fold", "Fold", show=False, id="fold-file"),
        Binding("minus", "fold_all", "Fold all", show=False, id="fold-files"),
        Binding("v", "accept", "Accept the file", show=False, id="accept-file"),
        Binding("m", "comment", "Comment", show=False, id="comment-line"),
        Binding("vertical_line", "beside", "Side by side", show=False, id="side-by-side"),
        Binding("shift+right", "shift(8)", "Right", show=False),
        Binding("shift+left", "shift(-8)", "Left", show=False),
    ]

    @dataclass
    class Noted(Message):
        """A comment is asked for: of a line, or -1 minus the index of a file."""

        line: int

    class Changed(Message):
        """The accepted files or the folded files changed."""

    def __init__(self, text: str = "", *, gate: bool = False, reviews: bool = False) -> None:
        """`reviews` allows comments and accepted files."""
        super().__init__()
        self._is_gate = gate
        self._reviews = reviews
        self._beside: bool | None = None
        """Whether the user wants removed lines beside added lines; None: where there is room."""
        self.searches = False
        """Whether n and N belong to a search of the screen."""
        self.replace(Patch(text))

    def replace(self, patch: Patch) -> None:
        """Show another patch from its beginning; comments and accepted files are dropped."""
        self.patch = patch
        self.comments: dict[int, str] = {}
        """Comments by line, or by -1 minus the index of a file."""
        self.accepted: set[int] = set()
        """Indexes of the accepted files."""
        self._folded: set[int] = set()
        self._digits = patch.digits
        self._shift = 0
        self.cursor = 0
        self._layout_rows()
        if self.is_mounted:
            self.scroll_home(animate=False)

    @property
    def length(self) -> int:
        return len(self.rows)

    @property
    def selected(self) -> PatchRow:
        """The row under the cursor."""
        return self.rows.at(self.cursor)

    @property
    def current_file(self) -> int:
        """Index of the file under the cursor."""
        return self.selected.file if len(self.rows) else 0

    @property
    def place(self) -> tuple[str, int]:
        """The file and the line under the cursor; of a head or a removed line, the next line."""
        row = self.selected
        file = self.patch.files[row.file]
        start = file.body if row.line is None else row.line
        following = (self.patch.new[line] for line in range(start, file.end))
        return file.path, next(filter(None, following), 1)

    @property
    def text(self) -> str:
        """Text of all rows."""
        return "\n".join(self._text(self.rows.at(nth)) for nth in range(len(self.rows)))

    def go_to_file(self, index: int) -> None:
        """Move to the head of a file, and scroll it to the top."""
        if 0 <= index < len(self.patch.files):
            row = self.rows.head_of(index)
            self.move_to(row, scroll=False)
            self.go_to_row(row)

    def find(self, text: str, by: int) -> bool:
        """Move to the next line with a text (-1: the previous; 0: from the cursor)."""
        row = self.selected if len(self.rows) else PatchRow(0)
        start = self.patch.files[row.file].body if row.line is None else row.line + by
        line = patches.find_line(self.patch, text, start, by or 1) if len(self.rows) else None
        if line is None:
            return False
        self._unfold(self.patch.file_of(line))
        self._center(self.rows.row_of(line))
        return True

    def set_comment(self, line: int, text: str) -> None:
        """Set the comment of a line or a file; "" removes it."""
        self.comments.pop(line, None)
        if text:
            self.comments[line] = text
        self._layout_rows()
        self.post_message(self.Changed())

    def review_text(self, reason: str = "") -> str:
        """Return a reason with the comments and the accepted files."""
        return patches.review_text(self.patch, self.comments, sorted(self.accepted), reason)

    def review_comments(self) -> list[str]:
        """Return the comments as `FILE:LINE=TEXT`, or `FILE=TEXT`."""
        return patches.review_comments(self.patch, self.comments)

    def action_move(self, by: int) -> None:
        self.move_to(self.cursor + by)

    def action_page(self, pages: float) -> None:
        rows = round(pages * (self.visible_rows - 1))
        self.go_to_row(self.top + rows)
        self.move_to(self.cursor + rows)

    def action_end(self, last: bool) -> None:
        self.move_to(len(self.rows) - 1 if last else 0)

    def action_file(self, by: int) -> None:
        """Go to the next file, or the previous for -1."""
        on_head = self.selected.line is None if len(self.rows) else True
        step = by if by > 0 or on_head else 0
        self.go_to_file(max(0, min(self.current_file + step, len(self.patch.files) - 1)))

    def action_hunk(self, by: int) -> None:
        """Go to the next hunk, or the previous for -1."""
        if not len(self.rows):
            return
        line = patches.next_hunk(self.patch, self.selected, by)
        if line is not None:
            self._unfold(self.patch.file_of(line))
            self._center(self.rows.row_of(line))

    def action_short_hunk(self, by: int) -> None:
        """Go to the next hunk, by the keys n and N."""
        self.action_hunk(by)

    def action_shift(self, by: int) -> None:
        """Scroll long lines to the right, or to the left."""
        self._shift = max(0, min(self._shift + by, self.patch.width - 8))
        self.refresh()

    def action_fold(self) -> None:
        """Fold the file under the cursor, or unfold it."""
        file = self.current_file
        self._fold(self._folded ^ {file}, file)

    def action_fold_all(self) -> None:
        """Fold all files, or unfold them if all are folded."""
        file = self.current_file
        every = set(range(len(self.patch.files)))
        self._fold(set() if self._folded == every else every, file)

    def action_accept(self) -> None:
        """Accept the file under the cursor and fold it, or take that back."""
        file = self.current_file
        self.accepted ^= {file}
        if file in self.accepted:
            following = min(file + 1, len(self.patch.files) - 1)
            self._fold(self._folded | {file}, following)
        else:
            self._fold(self._folded - {file}, file)

    def _fold(self, folded: set[int], file: int) -> None:
        """Fold these files and no others, and move to the head of a file."""
        self._folded = folded
        self._layout_rows()
        self.move_to(self.rows.head_of(file))
        self.post_message(self.Changed())

    def action_comment(self) -> None:
        """Ask for a comment on the line or the file under the cursor."""
        row = self.selected
        self.post_message(self.Noted(-1 - row.file if row.line is None else row.line))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave keys to the dialog or the screen that has them."""
        if action == "short_hunk":
            return not (self._is_gate or self.searches)
        if action in ("accept", "comment"):
            return self._reviews and bool(len(self.rows))
        if action == "page" and parameters[0] in (0.5, -0.5):
            return not self._is_gate
        if action in ("fold", "fold_all"):
            return bool(len(self.rows))
        return True

    def on_resize(self) -> None:
        if self.is_beside != isinstance(self.rows, SideRows):
            self._layout_again()
        self.keep_in_view()

    @property
    def is_beside(self) -> bool:
        """Whether removed lines are beside added lines."""
        if not self.is_mounted or self.app.size.width < SIDE_BY_SIDE:
            return False
        return len(self.patch.lines) <= MAX_BESIDE if self._beside is None else self._beside

    def action_beside(self) -> None:
        """Show removed lines beside added lines, or above them."""
        if self.app.size.width < SIDE_BY_SIDE:
            needed = f"side by side needs {SIDE_BY_SIDE} columns"
            self.app.notify(f"{needed}; this screen has {self.app.size.width}", markup=False)
            return
        self._beside = not self.is_beside
        self._layout_again()

    def _layout_again(self) -> None:
        """Lay the rows out, with the cursor on the same line."""
        row = self.selected if len(self.rows) else PatchRow(0)
        self._layout_rows()
        if len(self.rows):
            at = self.rows.head_of(row.file) if row.line is None else self.rows.row_of(row.line)
            self.move_to(at)

    def on_click(self, event: events.Click) -> None:
        row = self.top + event.y
        if row < len(self.rows):
            self.move_to(row)
            if self.selected.line is None:
                self.action_fold()

    def render_line(self, y: int) -> Strip:
        index = self.top + y
        width = self.size.width
        base = self.rich_style
        if index >= len(self.rows):
            return Strip.blank(width, base)
        row = self.rows.at(index)
        line_style = self._line_style(row)
        if index == self.cursor:
            line_style += self.get_component_rich_style("patch--cursor", partial=True)
        if isinstance(self.rows, SideRows) and row.line is not None and not row.note:
            half = (width - 1) // 2
            left, right = self._sides(row)
            is_cursor = index == self.cursor
            halves = [
                self._half(side, half, old=is_old, is_cursor=is_cursor)
                for side, is_old in ((left, True), (right, False))
            ]
            rule = Strip([Segment("│", base + self._part("gutter"))])
            return Strip.join([halves[0], rule, halves[1]]).crop(0, width)
        return self._strip(self._gutter_and_content(row), line_style, width, row)

    def _strip(
        self, parts: tuple[Sequence[Part], Sequence[Part]], style: Style, width: int, row: PatchRow
    ) -> Strip:
        """Return texts that are fixed and those that scroll, in a width."""
        gutter, content = (
            Strip([Segment(text, style + self._part(role, row)) for text, role in texts])
            for texts in parts
        )
        x = 0 if row.line is None else self._shift
        visible_width = max(0, width - gutter.cell_length)
        visible = content.crop_extend(x, x + visible_width, style)
        return Strip.join([gutter, visible]).crop(0, width)

    def _sides(self, row: PatchRow) -> tuple[PatchRow | None, PatchRow | None]:
        """Return what is on the left and on the right of a row; a hunk is on both."""
        if row.replaced is not None:
            return PatchRow(row.file, row.replaced), row
        old = self.patch.old[row.line or 0]
        new = self.patch.new[row.line or 0]
        is_numbered = bool(old or new)
        return (row if old or not is_numbered else None), (row if new or not is_numbered else None)

    def _half(self, row: PatchRow | None, width: int, *, old: bool, is_cursor: bool) -> Strip:
        """Return a side of a row, with the old or the new number."""
        style = self.rich_style if row is None else self._line_style(row)
        if is_cursor:
            style += self.get_component_rich_style("patch--cursor", partial=True)
        if row is None:
            return Strip.blank(width, style)
        (numbers, *rest), content = self._gutter_and_content(row)
        number = numbers[0][: self._digits] if old else numbers[0][self._digits + 1 : -1]
        return self._strip((((f"{number} ", numbers[1]), *rest), content), style, width, row)

    def _gutter_and_content(
        self, row: PatchRow
    ) -> tuple[Sequence[tuple[str, str]], Sequence[tuple[str, str]]]:
        """Return the texts of a row that are fixed and those that scroll, with their roles."""
        if row.line is None:
            return (), ((self._text(row), "head"),)
        blank = " " * (2 * self._digits + 2)
        if row.note:
            return ((blank, ""),), ((f"┃ {plain(self.comments[row.line])}", "note"),)
        line = shown_code(self.patch.lines[row.line], MAX_LINE).text.expandtabs(4)
        old = self.patch.old[row.line]
        new = self.patch.new[row.line]
        if not (old or new):
            return ((blank, ""),), ((line, "hunk"),)
        numbers = f"{old or '':>{self._digits}} {new or '':>{self._digits}} "
        sign = line[:1] or " "
        code: Sequence[Part] = colored(self.patch.files[row.file].path, line[1:])
        if (other := self.patch.partner(row.line)) is not None:
            code = marked(code, self._changed(row.line, line[1:], other))
        return ((numbers, "gutter"), (sign, _KINDS.get(sign, "")), (" ", "")), code

    def _changed(self, line: int, text: str, other: int) -> Sequence[Span]:
        """Return the changed words of a line, beside the line in its place."""
        partner = shown_code(self.patch.lines[other], MAX_LINE).text.expandtabs(4)[1:]
        is_removed = other > line
        pair = (text, partner) if is_removed else (partner, text)
        return changed_words(*pair)[0 if is_removed else 1]

    def _text(self, row: PatchRow) -> str:
        """Return a row as text."""
        if row.line is not None:
            gutter, content = self._gutter_and_content(row)
            return "".join(text for text, _ in (*gutter, *content))
        file = self.patch.files[row.file]
        sign = "▸" if row.file in self._folded else "▾"
        words = [f"{sign} {file.name}", f"+{file.added} -{file.removed}"]
        words.append(", ".join(self.patch.notes(file)))
        if row.file in self.accepted:
            words.append("✓ accepted")
        if comment := self.comments.get(-1 - row.file):
            words.append(f"┃ {plain(comment)}")
        return "  ".join(filter(None, words))

    def _line_style(self, row: PatchRow) -> Style:
        if row.line is None or row.note:
            return self.rich_style
        is_numbered = self.patch.old[row.line] or self.patch.new[row.line]
        kind = _KINDS.get(self.patch.lines[row.line][:1], "") if is_numbered else ""
        if kind not in ("plus", "minus"):
            return self.rich_style
        tint = self.get_component_styles(f"patch--{kind}").background
        return self.rich_style + Style(bgcolor=(self.background_colors[1] + tint).rich_color)

    def _part(self, role: str, row: PatchRow | None = None) -> Style:
        """Return the style of a role; of a changed word by the sign of its line."""
        if role.startswith(CHANGED) and row is not None:
            kind = _KINDS[self.patch.lines[row.line or 0][:1]]
            word = self.get_component_styles(f"patch--{kind}-word").background
            return Style(bgcolor=(self.background_colors[1] + word).rich_color, bold=True)
        if not role:
            return Style.null()
        style = self.get_component_rich_style(f"patch--{role}", partial=True)
        return Style(color=style.color, bold=style.bold, italic=style.italic)

    def _unfold(self, file: int) -> None:
        if file in self._folded:
            self._folded.discard(file)
            self._layout_rows()
            self.post_message(self.Changed())

    def _center(self, row: int) -> None:
        """Move to a row, with some rows above it in view."""
        self.move_to(row, scroll=False)
        self.go_to_row(row - self.visible_rows // 4)

    def _layout_rows(self) -> None:
        comments = [line for line in self.comments if line >= 0]
        rows = SideRows if self.is_beside else PatchRows
        self.rows: PatchRows | SideRows = rows(self.patch, frozenset(self._folded), comments)
        self.virtual_size = Size(0, len(self.rows))
        self.refresh()
