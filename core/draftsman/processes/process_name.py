"""Name of this process in the database, such as `draftsman worker 6d0f9a1c`.

`pg_stat_activity`, and so `draftsman doctor` and messages about locks, show it as the name of the
program.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

PROCESS_NAME: Final[ContextVar[str]] = ContextVar("process_name", default="draftsman client")
"""That of a program that uses the Python client; the command line sets it for each command."""
