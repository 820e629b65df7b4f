"""Kill of processes that fork and exit faster than /proc is read."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

from draftsman.sandbox.processes import process_tree

TREE = """
import ctypes, os, signal
ctypes.CDLL(None).prctl(36, 1)  # adopts orphans
root = os.getpid()
if os.fork() == 0:
    if os.fork() == 0:
        while os.getppid() != root:
            pass
        print("adopted", flush=True)
        signal.pause()
    os._exit(0)
os.wait()
signal.pause()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the children of a process in /proc")
def test_adopted_children_are_killed_without_a_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(
            subprocess.Popen([sys.executable, "-c", TREE], stdout=subprocess.PIPE)
        )
        stack.callback(root.kill)
        assert root.stdout is not None
        assert root.stdout.readline() == b"adopted\n"
        *_, child = Path(f"/proc/{root.pid}/task/{root.pid}/children").read_text().split()
        monkeypatch.setattr(process_tree, "_parents", list)
        process_tree.kill_children(root.pid)
        while not process_tree.is_dead(int(child)):
            pass


@pytest.mark.skipif(sys.platform != "linux", reason="reads the children of a process in /proc")
def test_a_process_that_has_exited_has_no_children_to_kill() -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    process_tree.kill_children(process.pid)
