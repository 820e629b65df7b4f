"""A process that saves views and themes: its arguments are the file and a name."""

from __future__ import annotations

import sys
from pathlib import Path

from draftsman_tui.dashboard.preferences import Preferences
from draftsman_tui.dashboard.tables.saved_views import View


def main() -> None:
    """Begin at the end of stdin, so as to write at the same time as others."""
    path, name = sys.argv[1:]
    preferences = Preferences(Path(path))
    sys.stdin.read(1)
    for nth in range(20):
        preferences.save(f"{name}-{nth}", View("jobs", f"age<{nth + 1}h"))
        preferences.save_theme("light")


if __name__ == "__main__":
    main()
