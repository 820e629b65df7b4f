"""Deadlines of runs: each is kept to, with a single timer for all."""

from __future__ import annotations

import asyncio

from draftsman.worker.execution import Deadlines
from tests.core.worker.workers import before_deadline

NEVER = 3600.0
SOON = 0.01


class Recorder:
    """Callbacks that record when they are called."""

    def __init__(self, expected: int) -> None:
        self.names: list[str] = []
        self.done = asyncio.Event()
        self._expected = expected

    def call(self, name: str) -> None:
        self.names.append(name)
        if len(self.names) == self._expected:
            self.done.set()


async def test_deadlines_expire_in_their_order_also_if_a_later_one_is_added_first() -> None:
    recorder = Recorder(3)
    deadlines = Deadlines(asyncio.get_running_loop())
    for name, seconds in (("last", 3 * SOON), ("never", NEVER), ("first", SOON), ("mid", 2 * SOON)):
        deadlines.add(lambda name=name: recorder.call(name), seconds)  # type: ignore[misc]
    await before_deadline(recorder.done.wait())
    assert recorder.names == ["first", "mid", "last"]
    assert len(deadlines) == 1


async def test_a_deadline_that_is_removed_does_not_expire_and_the_next_one_does() -> None:
    recorder = Recorder(1)
    deadlines = Deadlines(asyncio.get_running_loop())

    def removed() -> None:
        recorder.call("removed")

    deadlines.add(removed, SOON)
    deadlines.add(lambda: recorder.call("kept"), 2 * SOON)
    deadlines.remove(removed)
    deadlines.remove(removed)
    await before_deadline(recorder.done.wait())
    assert (recorder.names, len(deadlines)) == (["kept"], 0)


async def test_a_callback_may_add_and_remove_deadlines() -> None:
    recorder = Recorder(2)
    deadlines = Deadlines(asyncio.get_running_loop())

    def other() -> None:
        recorder.call("other")

    def first() -> None:
        recorder.call("first")
        deadlines.remove(other)
        deadlines.add(lambda: recorder.call("added"), SOON)

    deadlines.add(first, SOON)
    deadlines.add(other, 10 * SOON)
    await before_deadline(recorder.done.wait())
    assert (recorder.names, len(deadlines)) == (["first", "added"], 0)
