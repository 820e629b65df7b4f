"""What commands print: data on stdout, talk on stderr, JSON when it was asked for.

Text of people and agents never reaches a terminal raw: control characters are shown, not obeyed.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from draftsman_tui.common import stdio
from draftsman_tui.common.column_widths import share

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

MIN_COLUMN_WIDTH: Final = 8
"""Cells that a column of a table keeps, however narrow the terminal is."""
MAX_ERROR_TEXT: Final = 300
"""Characters of output that an error about it repeats."""
_CONTROLS: Final = {
    code: ascii(chr(code))[1:-1]
    for code in (
        *(code for code in range(32) if chr(code) not in "\n\t"),
        *range(127, 160),
        *(0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
    )
}
"""Escape sequences and the like, which would let a ticket drive the terminal."""

_ESCAPES: Final = {
    code: f"\\u{code:04x}"
    for code in (
        *(*range(0x7F, 0xA0), 0xAD, 0x61C, 0x180E, 0xFEFF),
        *(*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070)),
        *range(0xFFF9, 0xFFFC),
    )
}
"""What JSON may hold raw and a terminal obeys, or does not show; in JSON only strings have it."""


def plain(text: str) -> str:
    """Return the text with its control characters made visible; lines and tabs stay."""
    return text.translate(_CONTROLS)


def one_line(text: str) -> str:
    """Return the text on one line, without control characters."""
    return plain(" ".join(text.split()))


def styled(value: object, style: str = "") -> Text:
    """Return what people may see of a value, in a style of rich."""
    from rich.text import Text

    return Text(plain(str(value)), style)


def line(*parts: Text | str) -> Text:
    """Join pieces into one line; plain strings are made safe."""
    from rich.text import Text

    return Text.assemble(*(styled(part) if isinstance(part, str) else part for part in parts))


def hanging_indent(text: Text, indent: int) -> Table:
    """Return the line so that, where it is wrapped, it goes on `indent` cells from the left."""
    from rich.table import Table

    grid = Table.grid()
    grid.add_column(width=indent, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(text[:indent], text[indent:])
    return grid


def as_data(value: object) -> Any:
    """Return what JSON shows: columns under their names, times as ISO 8601, ids as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = (field.name for field in dataclasses.fields(value))
        return {name: as_data(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): as_data(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(as_data(item) for item in value)
    if isinstance(value, list | tuple):
        return [as_data(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


class CommandOutput:
    """Where one command prints. `json` and `colour` are what its options say."""

    def __init__(self, *, json: bool = False, colour: bool | None = None) -> None:
        self.json = json
        self.colour = colour

    @property
    def interactive(self) -> bool:
        """Whether a person sits there: to be asked, and to read the answer."""
        return stdio.is_terminal(sys.stdin) and stdio.is_terminal(sys.stderr)

    @property
    def on_screen(self) -> bool:
        """Whether stdout is a terminal."""
        return stdio.is_terminal(sys.stdout)

    @property
    def width(self) -> int:
        """Cells of a line of stdout."""
        return stdio.width(sys.stdout)

    def document(self, value: object) -> None:
        """Print the one JSON document of a command."""
        self.write(self._json(value, indent=2) + "\n")

    def item(self, value: object) -> None:
        """Print one JSON line of a stream."""
        self.write(self._json(value) + "\n")

    def print(self, *parts: RenderableType, cut: bool = False) -> None:
        """Print for people; plain strings are made safe. `cut` keeps a line on one of a screen."""
        self.write(self._render(sys.stdout, parts, cut=cut))

    def print_stderr(self, *parts: RenderableType, cut: bool = False) -> None:
        """Show a person something on stderr that is not data."""
        stdio.write_stderr(self._render(sys.stderr, parts, cut=cut))

    def info(self, text: str) -> None:
        """Tell a person one thing on stderr."""
        stdio.write_stderr(f"{plain(text)}\n")

    def table(
        self,
        heads: Sequence[str],
        rows: Iterable[Sequence[Text | str]],
        *,
        flexible: int | Sequence[int],
        right: Sequence[int] = (),
    ) -> None:
        """Print a table; where the terminal is too narrow the `flexible` columns are cut.

        They share the room that the others leave, each as much as its text needs.
        """
        from rich.table import Table

        cells = [[styled(one_line(c)) if isinstance(c, str) else c for c in row] for row in rows]
        widths = [
            max([len(head), *(row[at].cell_len for row in cells)]) for at, head in enumerate(heads)
        ]
        cut = [flexible] if isinstance(flexible, int) else list(flexible)
        wanted = [widths[at] for at in cut]
        room = self.width - sum(widths) + sum(wanted) - 2 * (len(heads) - 1)
        least = [min(MIN_COLUMN_WIDTH, size) for size in wanted]
        limits = dict(zip(cut, share(least, wanted, room), strict=True))
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for place, head in enumerate(heads):
            table.add_column(
                head,
                justify="right" if place in right else "left",
                no_wrap=True,
                overflow="ellipsis",
                max_width=limits.get(place),
            )
        for row in cells:
            table.add_row(*row)
        self.print(table)

    def write(self, text: str) -> None:
        """Write to stdout; raises CannotWrite, which keeps short text, and ReaderGone."""
        told = one_line(text)
        stdio.write(text, told if len(told) <= MAX_ERROR_TEXT else "")

    def _json(self, value: object, indent: int | None = None) -> str:
        """Return JSON; on a terminal, what would drive or reorder it is escaped."""
        text = json.dumps(as_data(value), indent=indent, ensure_ascii=not stdio.is_utf8())
        return text.translate(_ESCAPES) if self.on_screen else text

    def _render(self, stream: Any, parts: Iterable[RenderableType], *, cut: bool = False) -> str:
        from rich.console import Console

        coloured = self._coloured(stream)
        console = Console(
            file=io.StringIO(),
            width=stdio.width(stream),
            color_system="standard" if coloured else None,
            force_terminal=coloured,
            force_jupyter=False,
            legacy_windows=False,
            emoji=False,
            markup=False,
            highlight=False,
        )
        for part in parts:
            shown = styled(part) if isinstance(part, str) else part
            if cut:
                console.print(shown, no_wrap=True, overflow="ellipsis")
            else:
                console.print(_wrapped(shown, console.width))
        lines = console.file.getvalue().split("\n")  # type: ignore[attr-defined]
        return "\n".join(one.rstrip() for one in lines)

    def _coloured(self, stream: Any) -> bool:
        """Return whether the stream takes colour: a terminal, unless somebody said no."""
        forbidden = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        wanted = self.colour if self.colour is not None else not forbidden
        return wanted and stdio.is_terminal(stream)


def _wrapped(part: RenderableType, width: int) -> RenderableType:
    """Keep the indentation of a line that is longer than the terminal is wide."""
    from rich.text import Text

    if not isinstance(part, Text) or part.cell_len <= width:
        return part
    indent = len(part.plain) - len(part.plain.lstrip(" "))
    return hanging_indent(part, indent) if 0 < indent < width // 2 else part
