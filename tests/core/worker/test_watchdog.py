"""The watchdog thread of a worker's event loop."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from draftsman.worker.watchdog import EXIT_CODE, Watchdog
from draftsman_testing.waits import until

QUICK = 0.4
"""Seconds of the lease; a block of a quarter of it is logged."""


def block(until: threading.Event) -> None:
    """Block the event loop, like a handler with an endless loop."""
    while not until.wait(0.01):
        pass


def fail_if_called(code: int) -> None:
    """Replace the exit of the process: fail the test."""
    pytest.fail(f"it ended with {code}")


async def test_a_loop_blocked_for_a_lease_ends_the_process_with_its_stack(
    caplog: pytest.LogCaptureFixture,
) -> None:
    exited = threading.Event()
    codes = []

    def end(code: int) -> None:
        codes.append(code)
        exited.set()

    with Watchdog(QUICK, lambda: "D-7 run 2", end):
        block(exited)
    assert codes == [EXIT_CODE]
    first, last = [record.getMessage() for record in caplog.records]
    assert "D-7 run 2" in first
    assert "test_watchdog.py" in first
    assert " block < test_watchdog.py" in first
    assert "until a lease ended, " in last


async def test_a_loop_blocked_when_a_lease_ends_ends_the_process() -> None:
    """Most of the lease had passed when the block began."""
    exited = threading.Event()
    codes = []

    def end(code: int) -> None:
        codes.append(code)
        exited.set()

    with Watchdog(600, lambda: "", end, log_after=QUICK / 4, lease_left=lambda: QUICK) as watchdog:

        async def looked() -> bool:
            return watchdog.looks > 1

        await until(looked, "the first check")
        block(exited)
    assert codes == [EXIT_CODE]


async def test_a_short_block_and_its_end_are_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Heard(logging.Handler):
        def __init__(self, part: str) -> None:
            super().__init__()
            self.part = part
            self.event = threading.Event()

        def emit(self, record: logging.LogRecord) -> None:
            if self.part in record.getMessage():
                self.event.set()

    blocked = Heard("has been blocked")
    over = Heard("is running again")
    log = logging.getLogger("draftsman.worker.watchdog")
    for handler in (blocked, over):
        log.addHandler(handler)
    try:
        with Watchdog(60, lambda: "", fail_if_called, log_after=QUICK / 4):
            block(blocked.event)
            assert await asyncio.to_thread(over.event.wait, 30)
    finally:
        for handler in (blocked, over):
            log.removeHandler(handler)
    messages = [record.getMessage() for record in caplog.records]
    assert len([line for line in messages if "has been blocked" in line]) == 1
    assert "runs: none" in messages[0]


async def test_a_loop_that_is_busy_and_yields_is_not_blocked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Watchdog(60, lambda: "", fail_if_called, log_after=QUICK) as watchdog:

        async def looked() -> bool:
            return watchdog.looks > 15

        await until(looked, "three times the logged duration")
    assert caplog.records == []
