"""Commands that the fork server starts, compared with the same commands in a new interpreter."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from execnet.gateway_io import popen_bootstrapline

from draftsman.json_schemas import checker_process
from draftsman.json_schemas.checker import SchemaChecker
from draftsman.processes.shutdown import blocked
from tests.core.json_schemas.test_schemas import bomb
from tests.support.cases import cases
from tests.support.fork_server import NEW_INTERPRETER
from tests.support.process_report import MODULE
from tests.support.slow import slow_except

COMMAND = (sys.executable, "-m", MODULE)
ROOT = str(Path(__file__).parents[1])


def report(new: bool, *args: str, **options: Any) -> dict[str, Any]:
    """Run the report by a fork or in a new interpreter; return it."""
    env = options.pop("env", {**os.environ, "A": "b"}) | ({NEW_INTERPRETER: "1"} if new else {})
    options = {"cwd": ROOT, "stdout": subprocess.PIPE, "env": env} | options
    with subprocess.Popen([*COMMAND, *args], **options) as process:
        out, _ = process.communicate(b"input" if process.stdin else None, timeout=60)
    assert process.returncode == 0
    written: dict[str, Any] = json.loads(out)
    assert (MODULE in written.pop("interpreter")) is new
    return written


@cases(
    "options",
    [
        {},
        {"stdin": subprocess.PIPE},
        {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL},
        {"start_new_session": True},
        {"env": {"PYTHONPATH": f"{ROOT}:/nonexistent", "TZ": "Asia/Tokyo", "TMPDIR": "/var/tmp"}},
    ],
    ids=["inherited", "pipe", "null", "session", "environment"],
)
def test_a_fork_is_as_a_new_interpreter(options: dict[str, Any]) -> None:
    if "env" in options:
        options = {**options, "env": os.environ | options["env"]}
    forked, interpreted = (report(new, "one", "two", **options) for new in (False, True))
    assert forked == interpreted


@pytest.mark.parametrize("new", slow_except([False], [False, True]))
async def test_schemas_are_checked_with_the_same_limits(
    monkeypatch: pytest.MonkeyPatch, new: bool
) -> None:
    if new:
        monkeypatch.setenv(NEW_INTERPRETER, "1")
    async with SchemaChecker(cpu=0.2) as checker:
        assert await checker.problem({"type": "string"}, 1) == "1 is not of type 'string'"
        command = psutil.Process(checker._idle[0].pid).cmdline()
        assert (checker_process.__name__ in " ".join(command)) is new
        assert "more than 0.2 s of CPU" in str(await checker.schema_problem(bomb()))


def test_blocked_and_ignored_signals_are_inherited() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with blocked():
            forked, interpreted = (report(new) for new in (False, True))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert forked == interpreted
    assert forked["blocked"]
    assert "SIGHUP" in forked["ignored"]


@pytest.mark.parametrize("env", [{}, {NEW_INTERPRETER: "1"}], ids=["fork", "interpreter"])
def test_a_signal_that_arrives_before_the_command_runs_is_not_lost(env: dict[str, str]) -> None:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with blocked():
        process = subprocess.Popen(COMMAND, cwd=ROOT, env=os.environ | env, **pipes)
        process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(b"", timeout=60)
    assert json.loads(out)["pending"] == [signal.SIGTERM]


@cases(
    ("end", "code"),
    [("exit 3", 3), ("text", 1), ("error", 1), ("SIGINT", -signal.SIGINT), ("return", 0)],
)
def test_exit_codes_and_errors_are_the_same(end: str, code: int) -> None:
    command = [*COMMAND, "--end", end]
    outcomes = []
    for env in ({}, {NEW_INTERPRETER: "1"}):
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | env, capture_output=True, text=True, check=False
        )
        outcomes.append((done.returncode, done.stdout, done.stderr.splitlines()[-1:]))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][0] == code


def test_a_command_that_starts_commands_has_a_fork_server_too() -> None:
    forked, interpreted = (report(new, "--start", "up") for new in (False, True))
    assert forked == interpreted
    command = [*COMMAND, "--start", "up", "--end", "exit 3"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 3


def test_workers_of_xdist_are_forked() -> None:
    """A fork has the command line of the session; an interpreter has that of execnet."""
    command = Path("/proc/self/cmdline").read_bytes().split(b"\0")
    assert popen_bootstrapline.encode() not in command


async def test_a_command_is_a_child_that_asyncio_waits_for() -> None:
    process = await asyncio.create_subprocess_exec(*COMMAND, "--end", "wait", cwd=ROOT)
    assert psutil.Process(process.pid).ppid() == os.getpid()
    process.kill()
    assert await process.wait() == -signal.SIGKILL
