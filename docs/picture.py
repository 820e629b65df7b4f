"""Make docs/demo.svg, what the demo with Codex really prints: `python docs/picture.py`.

It needs the program of Codex on the PATH, outside of /tmp.
"""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 84
COMMAND = ("demo", "--agent", "codex")
ANSWER = ("--answer", "allow once")


def main() -> None:
    """Run the demo on a terminal of its own and draw what it shows."""
    master, slave = pty.openpty()
    env = os.environ | {"COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    with subprocess.Popen(
        [sys.executable, "-m", "draftsman_tui", *COMMAND, *ANSWER],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=env,
    ) as process:
        os.close(slave)
        shown = _read(master)
    if process.returncode:
        raise SystemExit(shown)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"$ draftsman {' '.join(COMMAND)}\n{shown}".rstrip()))
    path = Path(__file__).with_name("demo.svg")
    drawn = console.export_svg(title="draftsman")
    # the reader's own monospaced font: a picture in a repository fetches nothing
    path.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL), encoding="utf-8")


def _read(descriptor: int) -> str:
    parts = []
    try:
        while part := os.read(descriptor, 4096):
            parts.append(part)
    except OSError:  # the other end was closed
        pass
    return b"".join(parts).decode().replace("\r\n", "\n")


if __name__ == "__main__":
    main()
