"""The clock of leases."""

from __future__ import annotations

import time
from typing import Final

_ID: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> float:
    """Return a monotonic time in seconds that includes suspend, if the system has such a clock."""
    return time.clock_gettime(_ID)
