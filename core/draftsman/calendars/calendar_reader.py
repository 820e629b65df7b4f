"""Calendars that are read in a child process, so that none can use up the time of this one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
from asyncio.subprocess import Process
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from draftsman.calendars import calendar_process
from draftsman.calendars.icalendar import MAX_BYTES, CalendarEvent
from draftsman.errors import Failure, UsageError
from draftsman.processes.child_processes import run_isolated, start_isolated

CPU: Final = 5.0
"""Seconds of CPU to read a calendar; 300 meetings that repeat for ten years take three."""
MEMORY: Final = 512 * 1024 * 1024
"""Bytes of address space of the child."""
WALL: Final = 60.0
"""Seconds after which the child is killed, even without CPU time."""


async def read_calendar(
    data: bytes, start: datetime, end: datetime, zone: ZoneInfo, *, cpu: float = CPU
) -> list[CalendarEvent]:
    """Return the events of a time, in order.

    Raises UsageError for an invalid calendar and for one that takes too long, and Failure if the
    child cannot be started or does not end.
    """
    request = _request(data, start, end, zone)
    process = await _start(cpu)
    try:
        async with asyncio.timeout(WALL):
            output, _ = await process.communicate(request)
    except TimeoutError:
        raise _failed(f"it was not read within {WALL:g} s") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()
    return _events(process.returncode, output, cpu)


def read_calendar_blocking(
    data: bytes, start: datetime, end: datetime, zone: ZoneInfo, *, cpu: float = CPU
) -> list[CalendarEvent]:
    """Return the events as `read_calendar`, for callers that cannot wait in the event loop."""
    request = _request(data, start, end, zone)
    name = calendar_process.__name__
    try:
        ended = run_isolated(name, request, WALL, cpu, MEMORY)
    except OSError as error:
        raise _failed(f"cannot start a child process: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise _failed(f"it was not read within {WALL:g} s") from None
    return _events(ended.returncode, ended.stdout, cpu)


def _request(data: bytes, start: datetime, end: datetime, zone: ZoneInfo) -> bytes:
    if len(data) > MAX_BYTES:
        raise UsageError(f"a calendar has more than {MAX_BYTES:,} bytes")
    request = {"start": start.isoformat(), "end": end.isoformat(), "zone": zone.key}
    return json.dumps(request).encode() + b"\n" + data


def _events(code: int | None, output: bytes, cpu: float) -> list[CalendarEvent]:
    """Return the events of a child that has ended."""
    if code == -signal.SIGXCPU:
        raise UsageError(
            f"the calendar takes more than {cpu:g} s of CPU; give one with fewer events"
        )
    if code != 0:
        raise _failed(f"its child process ended with {code}")
    reply: dict[str, Any] = json.loads(output)
    if "why" in reply:
        raise UsageError(reply["why"])
    return [
        CalendarEvent(
            title, datetime.fromisoformat(first), datetime.fromisoformat(last), range(day, stop)
        )
        for title, first, last, day, stop in reply["events"]
    ]


async def _start(cpu: float) -> Process:
    try:
        return await start_isolated(calendar_process.__name__, cpu, MEMORY)
    except OSError as error:
        raise _failed(f"cannot start a child process: {error.strerror}") from None


def _failed(text: str) -> Failure:
    return Failure(f"the calendar: {text}", code="calendar")
