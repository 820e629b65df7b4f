"""The `up` command on a terminal without cursor control: status line and Ctrl-C."""

from __future__ import annotations

import os
import pty
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver

from draftsman.processes.shutdown import shutdown_signals
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_tui.cli.app import App as CommandApp
from draftsman_tui.cli.processes import dashboard as hangup
from draftsman_tui.cli.processes.foreground import Foreground
from draftsman_tui.terminal import stdio
from tests.support.fork_server import children
from tests.tui.cli.cli_runner import DEADLINE, Terminal, until
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


async def test_the_hangup_of_another_terminal_stops_all_processes(
    terminal: Callable[..., Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hangup of a terminal that does not control the process sends no signal."""
    monkeypatch.setattr(Terminal, "controls", False)
    screen = terminal("up", TERM="dumb")
    screen.expect("1 worker · ")
    family = [psutil.Process(screen.pid), *family_of(screen)]
    screen.hang_up()
    assert family[0].wait(DEADLINE) == 0
    until(lambda: ended(family[1:]), "the end of supervisor and worker")


async def test_a_dashboard_that_has_ended_is_not_shown_again_by_a_hangup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hangup continues the process, and Textual keeps its handler of that signal."""
    before = [signal.getsignal(number) for number in (signal.SIGCONT, signal.SIGTSTP)]
    master, end = pty.openpty()
    with os.fdopen(master, "wb"), os.fdopen(end) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        monkeypatch.setattr("sys.__stdin__", stdin)
        async with shutdown_signals() as signals:
            with hangup.ending(signals):
                LinuxDriver(App())
                assert signal.getsignal(signal.SIGCONT) not in before
    assert [signal.getsignal(number) for number in (signal.SIGCONT, signal.SIGTSTP)] == before


async def test_up_names_the_package_of_a_dashboard_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Unattached(Foreground):
        async def _attach(self, path: Path) -> int:
            return 0

    monkeypatch.setattr(stdio, "is_screen", lambda: True)
    monkeypatch.setitem(cast("dict[str, Any]", sys.modules), "textual", None)
    async with shutdown_signals() as signals:
        assert await Unattached(CommandApp(), [], signals).run() == 0
    assert "the dashboard is not installed; run: pip install '" in capsys.readouterr().err
