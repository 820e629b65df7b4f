"""Deadlines of runs: each is kept to, with a single timer for all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

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


@dataclass
class Timer:
    """A timer of the loop below."""

    at: float
    fire: Callable[[], None]
    canceled: bool = False

    def cancel(self) -> None:
        """Note it."""
        self.canceled = True


@dataclass
class Loop:
    """An event loop of which the test gives the time."""

    now: float = 100.0
    timers: list[Timer] = field(default_factory=list)

    def time(self) -> float:
        """Return the time."""
        return self.now

    def call_at(self, at: float, fire: Callable[[], None], *, context: Context) -> Timer:
        """Set a timer; its context keeps nothing of the run that adds a deadline."""
        assert not list(context)
        self.timers.append(Timer(at, fire))
        return self.timers[-1]


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def deadlines(loop: Loop) -> Deadlines:
    return Deadlines(cast("Any", loop))


def test_only_an_earlier_deadline_moves_the_timer(loop: Loop, deadlines: Deadlines) -> None:
    for seconds in (5, 5, 9):
        deadlines.add(lambda seconds=seconds: None, seconds)  # type: ignore[misc]
    (timer,) = loop.timers
    deadlines.add(lambda: None, 1)
    assert [each.at for each in loop.timers] == [105, 101]
    assert [each.canceled for each in loop.timers] == [True, False]
    assert timer.canceled


def test_a_late_timer_calls_all_that_is_due_in_the_order_of_the_deadlines(
    loop: Loop, deadlines: Deadlines
) -> None:
    called: list[str] = []
    for name, seconds in (("latest", 12), ("later", 9), ("second", 3), ("first", 1)):
        deadlines.add(lambda name=name: called.append(name), seconds)  # type: ignore[misc]
    loop.now += 4
    loop.timers[-1].fire()
    assert called == ["first", "second"]
    assert loop.timers[-1].at == 109
    assert not loop.timers[-2].canceled, "it has fired"


def test_a_timer_that_fires_early_counts_as_punctual(loop: Loop, deadlines: Deadlines) -> None:
    """The clock of an event loop may be behind the time of its timer by its resolution."""
    called: list[str] = []
    deadlines.add(lambda: called.append("due"), 1)
    loop.now += 0.999
    loop.timers[-1].fire()
    assert called == ["due"]


def test_a_deadline_after_the_last_one_expired_sets_a_timer(
    loop: Loop, deadlines: Deadlines
) -> None:
    deadlines.add(lambda: None, 1)
    loop.now += 1
    loop.timers[-1].fire()
    deadlines.add(lambda: None, 5)
    assert [timer.at for timer in loop.timers] == [101, 106]
    assert not any(timer.canceled for timer in loop.timers)
