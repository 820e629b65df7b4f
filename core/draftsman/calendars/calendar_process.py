"""Child process that reads a calendar, with limits of CPU and memory.

    request   {"start": …, "end": …, "zone": "UTC"}, a line of JSON, then the calendar
    reply     {"events": [[title, start, end, first day, end of days], …]} or {"why": "…"}

The kernel kills this process at its CPU limit.
"""

from __future__ import annotations

import json
import resource
import sys
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo


def main(arguments: list[str]) -> int:
    """Read the calendar in the input.

    `arguments` are the import path as JSON, the seconds of CPU, and the maximum address space in
    bytes.
    """
    sys.path[:] = json.loads(arguments[0])
    memory = int(arguments[2])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import icalendar  # noqa: F401 - imported before the CPU limit is set
    import recurring_ical_events  # type: ignore[import-untyped]  # noqa: F401

    from draftsman.json_schemas.checker_process import limit_cpu

    request = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    limit_cpu(float(arguments[1]))
    try:
        reply = _reply(data, request)
    except MemoryError:
        reply = {"why": "the calendar exceeds the memory limit"}
    sys.stdout.write(json.dumps(reply))
    sys.stdout.flush()
    return 0


def _reply(data: bytes, request: dict[str, str]) -> dict[str, Any]:
    from draftsman.calendars.icalendar import read_events
    from draftsman.errors import UsageError

    start, end = (datetime.fromisoformat(request[name]) for name in ("start", "end"))
    try:
        events = read_events(data, start, end, ZoneInfo(request["zone"]))
    except UsageError as error:
        return {"why": str(error)}
    except RecursionError:
        return {"why": "the calendar is nested too deeply"}
    return {
        "events": [
            (
                item.title,
                item.start.isoformat(),
                item.end.isoformat(),
                item.whole_days.start,
                item.whole_days.stop,
            )
            for item in events
        ]
    }
