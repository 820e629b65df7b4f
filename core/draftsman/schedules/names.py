"""Names of templates and schedules."""

from __future__ import annotations

import re
from typing import Final

from draftsman.errors import UsageError

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}")
NAMES: Final = "allowed: letters, digits and _ . : - without spaces, at most 63"


def check_name(name: str) -> str:
    """Return the name of a template or schedule; raises UsageError."""
    if NAME.fullmatch(name) is None:
        raise UsageError(f"name {name[:60]!r}: {NAMES}")
    return name
