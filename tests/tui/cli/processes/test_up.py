"""The `up` command on a terminal: the dashboard and its quit dialog."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator

import psutil
import pytest

from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.fork_server import children
from tests.support.slow import slow_except
from tests.tui.cli.cli_runner import DEADLINE, Cli, Terminal, until
from tests.tui.cli.dashboard_scenario import ASK_HANDLER, answer_and_resume, change_size
from tests.tui.cli.terminal_screen import TerminalScreen, see, see_that

Windows = Callable[..., TerminalScreen]
ALT_SCREEN_LEFT = "\x1b[?1049l"


@pytest.fixture
def up(cli: Cli, window: Windows) -> Iterator[TerminalScreen]:
    """Give the dashboard of a running `up`; nothing of it outlives the test."""
    with cli.config.open("a", encoding="utf-8") as config:
        config.write(ASK_HANDLER)
    screen = window("up")
    see(screen, "1 alive", "leader")
    family = children(screen.pid, recursive=True)
    yield screen
    for process in family:
        if process.is_running():
            process.kill()


def family_of(up: Terminal) -> list[psutil.Process]:
    """Return the supervisor and its worker."""
    processes = children(up.pid, recursive=True)
    assert len(processes) == 2, processes
    return processes


def ended(processes: list[psutil.Process]) -> bool:
    """Return whether all of them have ended."""
    return not psutil.wait_procs(processes, timeout=0)[1]


@pytest.mark.parametrize("keys", slow_except(["\x03\x03"], ["\x03\x03", "q\x03"]))
async def test_a_question_is_answered_and_two_keys_at_once_stop_all_processes(
    make: Factory, rt: Runtime, up: TerminalScreen, keys: str
) -> None:
    family = family_of(up)
    await answer_and_resume(up, make, rt)
    change_size(up, *up.size)
    up.type("\x03")
    see(up, "Leave the processes running, stop them all, or stay?")
    up.type("g")
    see_that(up, lambda lines: "Stop all" not in "\n".join(lines), "the end of the question")
    assert not ended(family)
    up.type("q")
    see(up, "Leave the processes running, stop them all, or stay?")
    up.type("\x1b")
    see_that(up, lambda lines: "Stop all" not in "\n".join(lines), "the end of the question")
    assert not ended(family)
    up.type(keys)
    assert up.end() == 0
    assert ended(family)
    assert "stopped" in up.screen.split(ALT_SCREEN_LEFT)[1]
    assert "Traceback" not in up.screen


@pytest.mark.slow(fast="tests/acceptance/test_up.py::test_up_restarts_a_dead_worker_and_stops_it")
async def test_a_dead_worker_is_reported_and_detached_processes_can_be_stopped_later(
    up: TerminalScreen,
) -> None:
    supervisor, dead = family_of(up)
    dead.kill()
    see(up, "worker was killed (SIGKILL) after", "restarting in 0.5 s", ":processes shows the log")
    up.type(":processes\r")
    see(up, "up.log", "draftsman_tui.cli.processes.supervisor")
    up.type("\x1b")
    # the whole log: while it grows, some of its lines are missing for a moment
    see_that(up, lambda lines: not re.search("esc: back|up.log|pid=", "\n".join(lines)), "its end")
    until(lambda: len(children(supervisor.pid)) == 1, "the next worker")
    [worker] = children(supervisor.pid)
    up.type("q")
    see(up, "Leave the processes running")
    up.type("l")
    assert up.end() == 0
    assert f"to stop them: kill {supervisor.pid}" in up.plain
    assert supervisor.is_running()
    assert worker.is_running()
    supervisor.terminate()
    assert supervisor.wait(DEADLINE) in (0, None)
    until(lambda: ended([worker]), "the end of the worker")


@pytest.mark.parametrize("number", slow_except([signal.SIGKILL], [signal.SIGKILL, signal.SIGTERM]))
async def test_no_process_remains_after_a_quit(up: TerminalScreen, number: int) -> None:
    family = family_of(up)
    os.kill(up.pid, number)
    assert up.end() == (0 if number != signal.SIGKILL else -signal.SIGKILL)
    until(lambda: ended(family), "the end of supervisor and worker")
    assert (ALT_SCREEN_LEFT in up.screen) is (number != signal.SIGKILL)


async def test_no_process_remains_after_the_terminal_is_closed(up: TerminalScreen) -> None:
    family = [psutil.Process(up.pid), *family_of(up)]
    up.hang_up()
    until(lambda: ended(family[1:]), "the end of supervisor and worker")
    assert family[0].wait(DEADLINE) == -signal.SIGHUP


async def test_the_end_of_the_supervisor_ends_the_dashboard_with_the_reason(
    up: TerminalScreen,
) -> None:
    supervisor, worker = family_of(up)
    supervisor.kill()
    assert up.end() == 128 + signal.SIGKILL
    output = up.plain.split(ALT_SCREEN_LEFT)[-1]
    assert "the supervisor was killed by signal 9" in output
    until(lambda: ended([worker]), "the end of the worker")


async def test_fatal_exit_is_reported_on_the_terminal(cli: Cli, window: Windows) -> None:
    with cli.config.open("a", encoding="utf-8") as config:
        config.write('\nhandlers.none = "no.such:thing"\n')
    screen = window("up")
    assert screen.end() == 2
    assert screen.plain.count("handlers.none: cannot import no.such:thing") == 1
    assert "Traceback" not in screen.plain, screen.plain
    assert "up.log" in screen.plain
