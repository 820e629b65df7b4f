"""Output of commands: data on stdout, messages on stderr, JSON on request.

Control characters in text of people and agents are escaped before they reach a terminal.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final

from draftsman.formats.invisible import escape_invisible, one_line
from draftsman.formats.json_data import as_data
from draftsman_tui.terminal import stdio
from draftsman_tui.terminal.column_widths import share_alike

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

MIN_COLUMN_WIDTH: Final = 8
"""Minimum width of a truncated table column in cells."""
GAP: Final = 2
"""Cells between the columns of a table."""
MAX_ERROR_TEXT: Final = 300
"""Maximum number of characters of lost output that an error repeats."""


def plain(text: str) -> str:
    """Escape invisible characters; line breaks and tabs are kept."""
    return escape_invisible(text)


def styled(value: object, style: str = "") -> Text:
    """Convert a value to safe text with a rich style."""
    from rich.text import Text

    return Text(plain(str(value)), style)


def line(*parts: Text | str) -> Text:
    """Join parts into one line; plain strings are escaped."""
    from rich.text import Text

    return Text.assemble(*(styled(part) if isinstance(part, str) else part for part in parts))


CHECK_STYLES: Final = {"ok": "green", "warn": "yellow", "fail": "bold red"}
"""Style of each result of a check."""


def check_lines(
    status: str, text: str, hint: str | None, name: str = "", width: int = 14
) -> list[RenderableType]:
    """Render the result of a check, and below it how to fix the problem.

    `width` is that of the names, in cells.
    """
    label = f"{name:<{width}}  " if name else ""
    text_line = line(styled(f"{status:<4}", CHECK_STYLES[status]), f"  {label}{one_line(text)}")
    first = hanging_indent(text_line, len(f"{status:<4}  {label}"))
    return [first, styled(f"      → {one_line(hint)}", "cyan")] if hint else [first]


def hanging_indent(text: Text, indent: int) -> Table:
    """Indent the continuation lines by `indent` cells if the line is wrapped."""
    from rich.table import Table

    grid = Table.grid()
    grid.add_column(width=indent, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(text[:indent], text[indent:])
    return grid


class CommandOutput:
    """Output of a command; `json`, `color` and `pager` are its options."""

    def __init__(
        self, *, json: bool = False, color: bool | None = None, pager: bool = True
    ) -> None:
        self.json = json
        self.color = color
        self._pager = pager

    def paged(self, *, unless: bool = False) -> AbstractContextManager[None]:
        """Show long output on a terminal in a pager, unless it is followed live."""
        from draftsman_tui.terminal import pager

        return pager.paged(enabled=self._pager and not unless)

    @property
    def interactive(self) -> bool:
        """Whether stdin and stderr are terminals, so prompts are possible."""
        return stdio.is_terminal(sys.stdin) and stdio.is_terminal(sys.stderr)

    @property
    def on_screen(self) -> bool:
        """Whether stdout is a terminal."""
        return stdio.is_terminal(sys.stdout)

    @property
    def has_cursor(self) -> bool:
        """Whether stdout is a terminal on which text can be replaced."""
        return self.on_screen and os.environ.get("TERM") not in stdio.DUMB

    @property
    def width(self) -> int:
        """Width of stdout in cells."""
        return stdio.width(sys.stdout)

    def document(self, value: object) -> None:
        """Print the JSON document of a command."""
        self.write(self._json(value, indent=2) + "\n")

    def result(self, data: object, *parts: RenderableType) -> None:
        """Print the JSON document of a command, or else text."""
        if self.json:
            self.document(data)
        else:
            self.print(*parts)

    @contextmanager
    def array(self) -> Iterator[Callable[[Sequence[object]], None]]:
        """Print a JSON array in parts; it is complete also if the command fails after a part."""
        separator = "["

        def add(values: Sequence[object]) -> None:
            nonlocal separator
            for value in values:
                self.write(f"{separator}\n  {self._json(value)}")
                separator = ","

        try:
            yield add
        finally:
            if separator == ",":
                self.write("\n]\n")

    def item(self, value: object) -> None:
        """Print a JSON line of a stream."""
        self.write(self._json(value) + "\n")

    def print(self, *parts: RenderableType, cut: bool = False) -> None:
        """Print text; plain strings are escaped. `cut` truncates long lines on a terminal."""
        self.write(self._render(sys.stdout, parts, cut=cut))

    def rendered(self, *parts: RenderableType) -> str:
        """Return lines as they are printed, truncated to a row each."""
        return self._render(sys.stdout, parts, cut=True)

    def print_stderr(self, *parts: RenderableType, cut: bool = False) -> None:
        """Print text to stderr, like `print`."""
        stdio.write_stderr(self._render(sys.stderr, parts, cut=cut))

    def info(self, text: str) -> None:
        """Print a message to stderr."""
        stdio.write_stderr(f"{plain(text)}\n")

    def table(
        self,
        heads: Sequence[str],
        rows: Iterable[Sequence[Text | str]],
        *,
        flexible: int | Sequence[int],
        right: Sequence[int] = (),
    ) -> None:
        """Print a table; the `flexible` columns are truncated if the terminal is too narrow.

        They share the space that the other columns leave, up to the width of their text; of those
        that are truncated, the one with the longest text is the widest.
        """
        from rich.table import Table

        cells = [[styled(one_line(c)) if isinstance(c, str) else c for c in row] for row in rows]
        widths = [
            max([len(head), *(row[at].cell_len for row in cells)]) for at, head in enumerate(heads)
        ]
        cut = [flexible] if isinstance(flexible, int) else list(flexible)
        preferred = [widths[at] for at in cut]
        available = self.width - sum(widths) + sum(preferred) - GAP * (len(heads) - 1)
        minimum = [min(MIN_COLUMN_WIDTH, size) for size in preferred]
        limits = dict(zip(cut, share_alike(minimum, preferred, available), strict=True))
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
        for index, head in enumerate(heads):
            table.add_column(
                head,
                justify="right" if index in right else "left",
                no_wrap=True,
                overflow="ellipsis",
                max_width=limits.get(index),
            )
        for row in cells:
            table.add_row(*row)
        self.print(table)

    def write(self, text: str) -> None:
        """Write to stdout; raises StdoutError with short text that was lost, and BrokenStdout."""
        lost = one_line(text)
        stdio.write(text, lost if len(lost) <= MAX_ERROR_TEXT else "")

    def _json(self, value: object, indent: int | None = None) -> str:
        """Serialize to JSON; on a terminal, escape characters that control or reorder text."""
        text = json.dumps(as_data(value), indent=indent, ensure_ascii=not stdio.is_utf8())
        if not self.on_screen:
            return text
        return escape_invisible(text, strict=True, escape=lambda char: json.dumps(char)[1:-1])

    def _render(self, stream: Any, parts: Iterable[RenderableType], *, cut: bool = False) -> str:
        from rich.console import Console

        colored = self._colored(stream)
        console = Console(
            file=io.StringIO(),
            width=stdio.width(stream),
            color_system="standard" if colored else None,
            force_terminal=colored,
            force_jupyter=False,
            legacy_windows=False,
            emoji=False,
            markup=False,
            highlight=False,
        )
        for part in parts:
            renderable = styled(part) if isinstance(part, str) else part
            if cut:
                console.print(renderable, no_wrap=True, overflow="ellipsis")
            else:
                console.print(_wrapped(renderable, console.width))
        lines = console.file.getvalue().split("\n")  # type: ignore[attr-defined]
        return "\n".join(text.rstrip() for text in lines)

    def _colored(self, stream: Any) -> bool:
        """Return whether to color the stream: a terminal, unless disabled."""
        forbidden = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        enabled = self.color if self.color is not None else not forbidden
        return enabled and stdio.is_terminal(stream)


def _wrapped(part: RenderableType, width: int) -> RenderableType:
    """Indent the continuation lines of a long line like its first."""
    from rich.text import Text

    if not isinstance(part, Text) or part.cell_len <= width:
        return part
    indent = len(part.plain) - len(part.plain.lstrip(" "))
    return hanging_indent(part, indent) if 0 < indent < width // 2 else part
