"""First frame of the dashboard: on the screen while its modules are imported."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[2J\x1b[H"
LEAVE: Final = "\x1b[?25h\x1b[?1049l"
"""Alternate screen and cursor (xterm, "Functions using CSI"), as the dashboard sets them."""


@contextmanager
def first_frame() -> Iterator[None]:
    """Show the frame of an empty dashboard; an error restores the screen, and is printed there."""
    columns, rows = shutil.get_terminal_size()
    _write(f"{ENTER}  draftsman\r\n{'─' * columns}\r\n  Starting …\x1b[{rows};1H  ? help  q quit")
    try:
        yield
    except BaseException:
        _write(LEAVE)
        raise


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
