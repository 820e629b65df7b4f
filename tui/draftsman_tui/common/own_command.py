"""The command line of draftsman itself, for the processes that it starts."""

from __future__ import annotations

import sys
from typing import Final

DRAFTSMAN_COMMAND: Final = (sys.executable, "-P", "-m", "draftsman_tui")
"""`-P` keeps modules of the current directory from being imported."""
