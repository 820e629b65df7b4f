"""`up` on a terminal: what goes on, and what Ctrl-C may mean."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import psutil
import pytest

from tests.factories import Factory
from tests.tui.cli.running import DEADLINE, Terminal, until


@pytest.fixture
def up(terminal: Callable[..., Terminal]) -> Iterator[Terminal]:
    """Give a running `up` on a terminal; nothing of it outlives the test."""
    shown = terminal("up")
    shown.expect("1 worker · ")
    family = psutil.Process(shown.pid).children(recursive=True)
    yield shown
    for one in family:
        if one.is_running():
            one.kill()


def _family(up: Terminal) -> list[psutil.Process]:
    found: list[psutil.Process] = psutil.Process(up.pid).children(recursive=True)
    assert len(found) == 2, found  # the supervisor and its worker
    return found


def _ended(processes: list[psutil.Process]) -> bool:
    return not psutil.wait_procs(processes, timeout=0)[1]


async def test_it_shows_what_goes_on_until_ctrl_c_stops_all(make: Factory, up: Terminal) -> None:
    family = _family(up)
    up.expect("leading, term")
    await make.asked()
    up.expect("1 waiting: draftsman questions · Ctrl-C: stop")
    up.type("\x03")
    up.expect("Stop all, leave it running, or go on")
    up.type("go-on\n")
    up.screen = ""
    up.expect("1 worker · ")
    assert not _ended(family)
    up.screen = ""
    up.type("\x03")
    up.expect("Stop all, leave it running, or go on")
    up.type("\n")
    assert up.end() == 0
    assert _ended(family)
    assert "stopped" in up.plain


async def test_it_can_be_left_running_and_stopped_later(up: Terminal) -> None:
    supervisor, worker = _family(up)
    up.type("\x03")
    up.expect("or go on")
    up.type("leave\n")
    assert up.end() == 0
    assert f"stop it with: kill {supervisor.pid}" in up.plain
    assert supervisor.is_running()
    assert worker.is_running()
    supervisor.terminate()
    assert supervisor.wait(DEADLINE) in (0, None)
    until(lambda: _ended([worker]), "the end of the worker")


async def test_ctrl_c_at_the_question_stops_all_in_order(up: Terminal) -> None:
    family = _family(up)
    up.type("\x03")
    up.expect("or go on")
    up.type("\x03")
    assert up.end() == 0
    assert _ended(family)


async def test_ctrl_c_reaches_the_worker_of_a_headless_up_once(
    terminal: Callable[..., Terminal],
) -> None:
    shown = terminal("up", "--headless")
    shown.expect("leading, term")
    shown.type("\x03")
    assert shown.end() == 0
    assert "exiting now" not in shown.plain


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP, signal.SIGTERM])
async def test_nothing_is_left_behind_when_it_is_ended(up: Terminal, number: int) -> None:
    family = _family(up)
    os.kill(up.pid, number)
    assert up.end() == (0 if number != signal.SIGKILL else -signal.SIGKILL)
    until(lambda: _ended(family), "the end of supervisor and worker")
