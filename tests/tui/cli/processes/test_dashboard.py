"""The `dashboard` command, on a terminal and without a terminal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.fork_server import NEW_INTERPRETER
from tests.support.slow import slow_except
from tests.tui.cli.cli_runner import DEADLINE, IMPORTABLE, Cli, Terminal, process
from tests.tui.cli.terminal_screen import TerminalScreen, see

Terminals = Callable[..., Terminal]
Windows = Callable[..., TerminalScreen]


async def test_without_a_terminal_other_commands_are_suggested(cli: Cli) -> None:
    (await cli("dashboard")).refused(2, "requires a terminal", "draftsman jobs")
    (await cli("dashboard", "--json")).refused(2, "has no JSON output")
    (await cli("dashboard", "--view", "nonsense")).refused(2, "nonsense", "inbox, dead")
    (await cli("dashboard", "--view", "inbx")).refused(2, "did you mean inbox?")


async def test_an_invalid_dashboard_setting_is_one_line_there_and_in_doctor(cli: Cli) -> None:
    wrong = '[dashboard]\nview = "nonsense"\n[dashboard.keys]\ninbox = "a"\n'
    with cli.config.open("a", encoding="utf-8") as file:
        file.write("\n" + wrong)
    expected = "[dashboard.keys] inbox: 'a' is already bound to answer; remap answer too"
    (await cli("dashboard")).refused(2, expected)
    checks = json.loads((await cli("doctor", "--json")).out)["checks"]
    (finding,) = (check for check in checks if check["name"] == "dashboard")
    assert (finding["status"], finding["text"]) == ("fail", expected)
    cli.config.write_text(cli.config.read_text().replace('"a"', '"E"'), "utf-8")
    (await cli("dashboard")).refused(2, "[dashboard] view: unknown table or saved view")


async def test_the_first_frame_comes_before_the_imports_and_leaves_with_an_error(
    terminal: Terminals,
) -> None:
    screen = terminal("dashboard", "--view", "nonsense")
    screen.expect("Starting …")
    assert screen.end() == 2
    marks = "\x1b[?1049h", "Starting …", "\x1b[?1049l", "unknown table or saved view 'nonsense'"
    places = [screen.screen.index(mark) for mark in marks]
    assert places == sorted(places)


async def test_a_dumb_terminal_is_reported(terminal: Terminals) -> None:
    screen = terminal("dashboard", TERM="dumb")
    assert screen.end() == 2
    assert "this terminal (TERM=dumb) cannot show the dashboard" in screen.plain


async def test_missing_dashboard_libraries_are_reported_with_the_install_command(
    terminal: Terminals, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['textual'] = None\n")
    path = os.pathsep.join((str(tmp_path), IMPORTABLE["PYTHONPATH"]))
    message = "draftsman: the dashboard is not installed; run: pip install '"
    env = {"PYTHONPATH": path, NEW_INTERPRETER: "1"}
    alone = terminal(**env)
    assert alone.end() == 0
    last = alone.plain.rstrip().replace("\n", "").partition(message)[2]
    assert ("Usage: draftsman" in alone.plain, last[-6:]) == (True, "[tui]'")
    named = terminal("dashboard", **env)
    assert named.end() == 2
    assert message in named.plain.replace("\n", "")


def test_dashboard_help_names_views_and_themes_without_loading_textual() -> None:
    script = (
        "import sys\nfrom draftsman_tui.cli.main import run\ncode = run(['dashboard', '--help'])\n"
        "print('LOADED', *sys.modules)\nsys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    expected, loaded = done.stdout.split("LOADED ")
    assert "Table or saved view" in expected
    assert "[dark|light|contrast|none]" in expected
    assert {"textual", "aiohttp"} & set(loaded.split()) == set()


async def test_a_job_is_canceled_on_a_terminal(window: Windows, make: Factory, rt: Runtime) -> None:
    """Typed input arrives in a burst, as over a slow network; every key must be handled."""
    number = await make.queued()
    screen = window("dashboard")
    see(screen, f"D-{number}")
    screen.type(":cancel\r")
    see(screen, f"Cancel D-{number}?")
    screen.type("y")
    see(screen, f"D-{number} canceled")
    screen.type("/status:failed\r")
    see(screen, "jobs · 0 · /status:failed")
    screen.type("q")
    assert screen.end() == 0
    assert (await rt.read_model.job(number)).status is Status.CANCELED
    assert "Traceback" not in screen.screen


@pytest.mark.parametrize(
    "end", slow_except(["\x03", signal.SIGTERM], ["\x03", signal.SIGTERM, "close"])
)
async def test_the_dashboard_ends_with_its_exit_code(
    window: Windows, cli: Cli, end: str | int
) -> None:
    screen = window()
    see(screen, "No jobs yet")
    family = psutil.Process(screen.pid)
    if isinstance(end, int):
        family.send_signal(end)
    elif end == "close":
        screen.hang_up()
        assert family.wait(DEADLINE) == -signal.SIGHUP
        return
    else:
        screen.type(end)
    assert screen.end() == 0
    assert "\x1b[?1049l" in screen.screen, "the terminal shows its main screen again"
    assert "Traceback" not in screen.screen


async def test_the_dashboard_ends_when_another_terminal_vanishes(
    window: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hangup of a terminal that does not control the process sends no signal."""
    monkeypatch.setattr(Terminal, "controls", False)
    screen = window("dashboard")
    see(screen, "No jobs yet")
    family = psutil.Process(screen.pid)
    screen.hang_up()
    assert family.wait(DEADLINE) == -signal.SIGHUP


def test_draftsman_with_options_alone_prints_help_without_a_terminal(cli: Cli) -> None:
    done = process("--config", cli.config)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == process("--help").stdout
