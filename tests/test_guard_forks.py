"""Guards forked for tests are like those of a new interpreter."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from draftsman.sandbox.confinement import ENVIRONMENT, encode
from draftsman.sandbox.processes.guard import KILL
from tests.support.guard_forks import GUARD, NEW_GUARD

PLAN: Final[dict[str, Any]] = {
    "seccomp": None,
    "mode": "off",
    "keep": [],
    "memory": 1 << 32,
    "file_size": 1 << 32,
    "processes": 10_000,
    "uid": None,
}
SHOW = "pwd; umask; env; ls /proc/self/fd; echo end; exec sleep 60"


def report_of_guard(folder: Path) -> dict[str, Any]:
    """Return the inherited state of a guard and its program, and the exit code after a kill."""
    orders, control = os.pipe()
    replies_read, replies = os.pipe()
    arguments = [*GUARD, str(orders), str(replies), "60", encode(PLAN), "--"]
    with subprocess.Popen(
        [*arguments, "/bin/sh", "-c", SHOW],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env={ENVIRONMENT: encode({"ONE": "1", "PATH": os.defpath})},
        pass_fds=(orders, replies),
        start_new_session=True,
    ) as process:
        os.close(orders)
        os.close(replies)
        assert process.stdout is not None
        lines = [*iter(process.stdout.readline, b"end\n")]
        guard = psutil.Process(process.pid)
        [keeper] = guard.children()
        command = [word for word in guard.cmdline() if word]
        assert os.read(replies_read, 100).split()[0] == str(keeper.pid).encode()
        report: dict[str, Any] = {
            "output": lines,
            "command": command[: len(GUARD)] + command[len(GUARD) + 2 :],
            "parent": guard.ppid(),
            "session": os.getsid(process.pid) - process.pid,
        }
        os.write(control, KILL)
        report["code"] = process.wait(20)
        os.close(control)
        os.close(replies_read)
    return report


def test_a_forked_guard_is_like_that_of_a_new_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forked = report_of_guard(tmp_path)
    monkeypatch.setenv(NEW_GUARD, "1")
    assert forked == report_of_guard(tmp_path)
    assert forked["output"][0].decode().strip() == str(tmp_path)
    assert forked["parent"] == os.getpid()
