"""Entry point of `draftsman`: holds shutdown signals before slow imports."""

from __future__ import annotations

import gc
from typing import Final

from draftsman.processes import early_signals

GC_THRESHOLD: Final = 50_000
"""Allocations between two collections: with the default of 700, imports take a third longer."""


def main() -> None:
    """Run the command line and exit."""
    early_signals.hold()
    gc.set_threshold(GC_THRESHOLD)
    from draftsman_tui.cli.main import main

    main()


if __name__ == "__main__":
    main()
