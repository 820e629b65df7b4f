"""The tests of times, each begun at an odd moment: just before an hour, a day, a month ends."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
TIMEOUT: Final = 1800.0
"""Seconds."""
MOMENTS: Final = {
    "hour": "2027-03-10T13:59:59.8+00:00",
    "midnight": "2027-03-10T23:59:59.7+00:00",
    "month": "2032-02-29T23:59:59+00:00",  # and years later
    "clock change": "2026-10-25T00:59:59.8+00:00",  # of Berlin, back to winter time
}
FOLDERS: Final = ("bots", "core", "tui")
TIMES: Final = re.compile(
    r"clock: Clock|datetime\.now|timedelta|ZoneInfo|digest|quiet|schedules\b|today|yesterday|until"
    r" friday|@hourly|@daily"
)
"""What the tests of times contain: moves of the clock, times and durations, what is due later."""


def files() -> list[str]:
    """Return the files whose tests depend on the time."""
    paths = [path for name in FOLDERS for path in (ROOT / "tests" / name).rglob("test_*.py")]
    return sorted(str(path) for path in paths if TIMES.search(path.read_text("utf-8")))


@pytest.mark.timeout(TIMEOUT + 60)
@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_the_time_of_day_changes_no_result(moment: str) -> None:
    options = ["-m", "not slow and not costly", "-n", "2", "--dist", "worksteal", "-q"]
    command = [sys.executable, "-m", "pytest", *files(), *options, "--clock", moment]
    done = subprocess.run(command, cwd=ROOT, timeout=TIMEOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-10000:]
