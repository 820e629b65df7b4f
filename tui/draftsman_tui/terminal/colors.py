"""Colors of a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from draftsman.entities.cells import ROLES
from draftsman.jobs.status_display import Meaning

STYLES: Final[Mapping[Meaning, str]] = {
    Meaning.PENDING: "cyan",
    Meaning.ACTIVE: "bold cyan",
    Meaning.WAITING: "bold yellow",
    Meaning.WARNING: "magenta",
    Meaning.SUCCESS: "green",
    Meaning.FAILURE: "red",
    Meaning.DENIED: "bright_magenta",
    Meaning.NEUTRAL: "dim",
}
"""The rich style of each meaning."""
CELL_STYLES: Final[Mapping[str, str]] = {
    "key": "bold",
    **{role: STYLES[meaning] for meaning, role in ROLES.items()},
}
"""The rich style of each role of a cell; the dashboard has themes."""
