"""The clock of a session with `--clock MOMENT`: each test begins at that moment.

Python reads the moment from `datetime.now` and `time.time`, in this process and in commands that
are forked; the databases of the tests have it in `draftsman.clock_offset`. The server itself, files
and new interpreters keep the time of the machine: a test that compares with those has the mark
`machine_clock`, with the reason.
"""

from __future__ import annotations

import ctypes
import gc
import os
import time
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

VARIABLE: Final = "TESTS_CLOCK_OFFSET"
"""Variable with the seconds by which the clock is ahead, also of the commands of a test."""
_time: Final = time.time
_now: Final = datetime.now


def offset() -> float:
    """Return the seconds by which the clock of this test is ahead of that of the machine."""
    return float(os.environ.get(VARIABLE, 0))


def install() -> None:
    """Let Python read the shifted clock; the variable decides how far it is ahead."""
    if time.time is not _time:
        return
    time.time = lambda: _time() + offset()
    # datetime is immutable, so that modules can keep it by any name: its dictionary is not
    attributes: dict[str, Any] = gc.get_referents(datetime.__dict__)[0]
    attributes["now"] = classmethod(_shifted_now)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime))


def begin(moment: datetime | None) -> None:
    """Set the clock to a moment, or to the time of the machine."""
    ahead = 0.0 if moment is None else (moment - _now(UTC)).total_seconds()
    os.environ[VARIABLE] = str(ahead)


def _shifted_now(_cls: type[datetime], tz: tzinfo | None = None) -> datetime:
    if tz is None:
        return _now() + timedelta(seconds=offset())
    return (_now(UTC) + timedelta(seconds=offset())).astimezone(tz)
