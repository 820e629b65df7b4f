"""Lines at the end of a terminal that are drawn again in place, below what was printed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman_tui.terminal.output import CommandOutput

FALLBACK_SIZE = (80, 24)


class LiveRegion:
    """The lines; nothing else may be printed before they are cleared."""

    def __init__(self, out: CommandOutput) -> None:
        self._out = out
        self._shown = ""

    def show(self, *lines: Text) -> None:
        """Draw the lines instead of those before, each in a row, the last ones if too many."""
        most = max(1, shutil.get_terminal_size(FALLBACK_SIZE).lines - 2)
        text = self._out.rendered(*lines[-most:])
        if text != self._shown:
            self._out.write(self._erasure() + text)
            self._shown = text

    def clear(self) -> None:
        """Remove the lines."""
        if self._shown:
            self._out.write(self._erasure())
            self._shown = ""

    def _erasure(self) -> str:
        rows = self._shown.count("\n")
        return f"\x1b[{rows}A\x1b[J" if rows else ""
