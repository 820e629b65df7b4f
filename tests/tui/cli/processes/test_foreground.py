"""The `up` command on a terminal without cursor control: status line and Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from draftsman.runtime import Runtime
from tests.factories import Factory
from tests.support.fork_server import children
from tests.tui.cli.cli_runner import Terminal
from tests.tui.cli.processes.test_up import ended, family_of


@pytest.fixture
def up(terminal: Callable[..., Terminal]) -> Iterator[Terminal]:
    """Give a running `up` on a terminal; nothing of it outlives the test."""
    screen = terminal("up", TERM="dumb")
    screen.expect("1 worker · ")
    family = children(screen.pid, recursive=True)
    yield screen
    for process in family:
        if process.is_running():
            process.kill()


async def test_foreground_shows_activity_until_ctrl_c_stops_all_processes(
    make: Factory, up: Terminal
) -> None:
    family = family_of(up)
    up.expect("became leader, term")
    await make.asked()
    up.expect("1 waiting: draftsman questions · Ctrl-C: stop")
    up.type("\x03")
    up.expect("Stop all processes, leave them running, or continue")
    up.type("\n")
    up.screen = ""
    up.expect("1 worker · ")
    assert not ended(family)
    up.screen = ""
    up.type("\x03")
    up.expect("Stop all processes, leave them running, or continue")
    up.type("stop\n")
    assert up.end() == 0
    assert ended(family)
    assert "stopped" in up.plain


async def test_ctrl_c_at_a_question_shuts_down_all_processes(up: Terminal) -> None:
    family = family_of(up)
    up.type("\x03")
    up.expect("or continue")
    up.type("\x03")
    assert up.end() == 0
    assert ended(family)


async def test_ctrl_c_reaches_the_worker_of_a_headless_up_once(
    terminal: Callable[..., Terminal], rt: Runtime
) -> None:
    screen = terminal("up", "--headless")
    screen.expect("became leader, term")
    [worker] = children(screen.pid)
    screen.type("\x03")
    assert screen.end() == 0
    assert ended([worker])
    assert await rt.read_model.workers() == []
    assert "exiting now" not in screen.plain
