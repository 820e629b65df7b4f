"""Liveness of processes: alive, ended, or not to be seen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from draftsman.processes import host
from draftsman.processes.host import Liveness
from tests.support.cases import cases

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
NAME = b"a) Z (b"
"""A name of a program that looks like the end of its field."""


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """Give a process of this host."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a /proc without processes, that of this namespace."""
    host.identity()  # of the real one, which is kept
    (tmp_path / "self").symlink_to(str(os.getpid()))
    monkeypatch.setattr(host, "PROC", tmp_path)
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    return tmp_path


def _state(pid: int, started: float) -> Liveness:
    return host.liveness(host.identity(), pid, started)


def _started(pid: int) -> float:
    started = host.process_start_time(pid)
    assert started is not None
    return started


def _write(proc: Path, pid: int, *, state: str = "S", threads: int = 1, started: int = 500) -> None:
    folder = proc / str(pid)
    folder.mkdir(exist_ok=True)
    fields = f"{state}{' 1' * 16} {threads} 0 {started} 0 0\n"
    (folder / "stat").write_bytes(b"%d (%s) %s" % (pid, NAME, fields.encode()))


def test_a_step_of_the_wall_clock_ends_no_process(
    process: subprocess.Popen[bytes], proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel computes the time of the boot from the wall clock."""
    monkeypatch.setattr(host, "PROC", Path("/proc"))
    began = _started(process.pid)
    moved = re.sub(
        r"btime (\d+)",
        lambda found: f"btime {int(found[1]) + 2}",
        Path("/proc/stat").read_text(),
    )
    (proc / "stat").write_text(moved)
    for pid in (os.getpid(), process.pid):
        (proc / str(pid)).symlink_to(f"/proc/{pid}")
    monkeypatch.setattr(host, "PROC", proc)
    monkeypatch.setattr(psutil, "BOOT_TIME", None, raising=False)
    assert _state(process.pid, began) is Liveness.ALIVE


def test_a_process_is_alive_until_it_is_killed(process: subprocess.Popen[bytes]) -> None:
    began = _started(process.pid)
    assert _state(process.pid, began) is Liveness.ALIVE
    assert _state(process.pid, began - 1) is Liveness.ENDED, "another process had its number"
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert _state(process.pid, began) is Liveness.ENDED, "a zombie"
    process.wait()
    assert _state(process.pid, began) is Liveness.ENDED
    assert host.process_start_time(process.pid) is None


@cases(
    "error, expected",
    [
        (None, Liveness.UNKNOWN),
        (PermissionError, Liveness.UNKNOWN),
        (ProcessLookupError, Liveness.ENDED),
    ],
)
def test_a_process_that_is_hidden_may_run(
    proc: Path, monkeypatch: pytest.MonkeyPatch, error: type[OSError] | None, expected: Liveness
) -> None:
    """As with the mount option hidepid, or for the process of another user."""

    def kill(pid: int, number: int) -> None:
        assert (pid, number) == (77, 0)
        if error is not None:
            raise error

    monkeypatch.setattr(os, "kill", kill)
    assert _state(77, 500.0) is expected


@cases("threads, expected", [(1, Liveness.ENDED), (2, Liveness.ALIVE)])
def test_a_process_whose_first_thread_ended_runs_as_long_as_others(
    proc: Path, threads: int, expected: Liveness
) -> None:
    _write(proc, 77, state="Z", threads=threads)
    assert _state(77, 500.0) is expected


def test_a_process_of_unknown_start_may_be_another(proc: Path) -> None:
    _write(proc, 77)
    assert _state(77, 0.0) is Liveness.UNKNOWN


def test_a_host_and_a_namespace_that_are_not_this_one_hide_a_process(
    process: subprocess.Popen[bytes], proc: Path
) -> None:
    process.kill()
    process.wait()
    assert host.liveness("far:boot:pid:[1]", process.pid, 1.0) is Liveness.UNKNOWN
    (proc / "self").unlink()
    (proc / "self").symlink_to("1")  # the /proc of the namespace that this one is in
    _write(proc, os.getpid(), started=1)
    assert _state(os.getpid(), 2.0) is Liveness.UNKNOWN


def test_a_host_is_identified_by_its_boot_and_its_namespaces() -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    parts = host.identity().split(":", 2)
    assert parts[:2] == [host.name(), boot]
    namespaces = [
        str(link.readlink())
        for link in (Path("/proc/self/ns/pid"), Path("/proc/self/ns/time"))
        if link.exists()
    ]
    assert parts[2] == ":".join(namespaces)
