"""Command line that starts draftsman as a child process."""

from __future__ import annotations

import sys
from typing import Final

DRAFTSMAN_COMMAND: Final = (sys.executable, "-P", "-m", "draftsman_tui")
"""`-P` keeps modules of the current directory from being imported."""
