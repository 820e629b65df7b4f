"""The dashboard of `up` in tmux; tests/tui/cli uses a bare terminal.

Needs tmux; takes some seconds.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.tui.cli.cli_runner import COMMAND, IMPORTABLE, Cli, until
from tests.tui.cli.conftest import as_ as as_
from tests.tui.cli.conftest import cli as cli
from tests.tui.cli.conftest import config as config
from tests.tui.cli.conftest import me as me
from tests.tui.cli.dashboard_scenario import ASK_HANDLER, answer_and_resume, change_size
from tests.tui.cli.processes.test_up import ended
from tests.tui.cli.terminal_screen import see

SIZE = (120, 34)


class Tmux:
    """A window of a separate tmux server."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self.lines: list[str] = []
        self._socket = folder / "tmux"
        size = [part for pair in zip(("-x", "-y"), map(str, SIZE), strict=True) for part in pair]
        self._do("new-session", "-d", *size, "bash", "--norc", "--noprofile")
        self._do("set-option", "-g", "window-size", "manual")
        self.type(f"{shlex.join(command)}; echo it ended with $?\n")

    def look(self) -> None:
        """Read the screen."""
        self.lines = [line.rstrip() for line in self._do("capture-pane", "-p").split("\n")]

    def type(self, text: str) -> None:
        """Type a text."""
        self._do("send-keys", "-l", text)

    def resize(self, columns: int, lines: int) -> None:
        """Give the window another size."""
        self._do("resize-window", "-x", str(columns), "-y", str(lines))

    def close(self) -> None:
        """Close the window, and tmux with it."""
        self._do("kill-server")

    @property
    def family(self) -> list[psutil.Process]:
        """The process ids below the shell."""
        shell = int(self._do("display-message", "-p", "#{pane_pid}"))
        processes: list[psutil.Process] = psutil.Process(shell).children(recursive=True)
        return processes

    def _do(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", os.devnull, *arguments]
        env = {**os.environ, **IMPORTABLE, "TMUX": "", "TERM": "xterm-256color"}
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def tmux(cli: Cli, tmp_path: Path) -> Iterator[Tmux]:
    """Provide a window with a running `up`, and stop everything after the test."""
    if shutil.which("tmux") is None:
        pytest.skip("there is no tmux here")
    with cli.config.open("a", encoding="utf-8") as config:
        config.write(ASK_HANDLER)
    screen = Tmux(tmp_path, [*COMMAND, "--config", str(cli.config), "up"])
    see(screen, "1 alive", "leader")
    family = screen.family
    yield screen
    if any(not ended([process]) for process in family):
        screen.close()
    until(lambda: ended(family), "the end of all processes")


async def test_question_is_answered_and_its_job_resumes(
    tmux: Tmux, make: Factory, rt: Runtime
) -> None:
    await answer_and_resume(tmux, make, rt)
    change_size(tmux, *SIZE)
    family = tmux.family
    assert len(family) == 3
    tmux.type("q")
    see(tmux, "Leave the processes running, stop them all, or stay?")
    tmux.type("s")
    see(tmux, "it ended with 0")
    assert ended(family)
    tmux.close()


async def test_closed_window_shuts_down_all_processes(tmux: Tmux, rt: Runtime) -> None:
    family = tmux.family
    tmux.close()
    until(lambda: ended(family), "the end of dashboard, supervisor and worker")
    assert await rt.read_model.workers() == []
