"""Attacks of an agent on snapshots of its tree."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

import psutil
import pytest

from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.errors import Failure
from draftsman.sandbox.processes import process_tree
from draftsman.sandbox.processes.process import AgentProcess
from draftsman.settings.agents import AgentSettings
from draftsman.settings.sandbox import SandboxSettings
from tests.attacks.catalog import attack
from tests.core.worker.agent_jobs import git, make_repository
from tests.support.slow import slow_except

DEADLINE = 60.0
SNAPSHOTS = 5
"""Snapshots while the agent is stopped."""
ROUNDS = 2
READS = 6
"""Snapshots, and artifacts that are read, under attack: an unprotected snapshot fails at once."""
SWAP = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
outside = sys.argv[1]
for number in range(40):
    os.makedirs(f"d{number}/sub")
    open(f"d{number}/sub/key", "w").write("mine")
    os.symlink(outside, f"link{number}")
def swap():
    while True:
        for number in range(40):
            ours, theirs = f"d{number}/sub".encode(), f"link{number}".encode()
            libc.renameat2(-100, ours, -100, theirs, 2)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        swap()
    os._exit(0)
os.wait()
print("ready", flush=True)
swap()
"""
FORKS = """
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def chain():
    while True:
        with open("count", "a") as file: file.write("x")
        if os.fork(): os._exit(0)
for _ in range(4):
    if os.fork() == 0: chain()
print("ready", flush=True)
signal.pause()
"""

WAKES = """
import ctypes, os, signal
def go_on(*_):
    timers.timer_settime(timer, 0, interval, None)
signal.signal(signal.SIGCONT, go_on)
libc = ctypes.CDLL(None)
timers = libc if hasattr(libc, "timer_create") else ctypes.CDLL("librt.so.1")
event = (ctypes.c_int * 16)(0, 0, signal.SIGCONT, 0)
timer, interval = ctypes.c_void_p(), (ctypes.c_long * 4)(0, 50_000_000, 0, 50_000_000)
timers.timer_create(1, event, ctypes.byref(timer))
go_on()
print("ready", flush=True)
while True: signal.pause()
"""
"""A timer continues the agent. Many kernels discard the signal of a timer that expires just before
the stop, so the timer is set again each time the agent continues."""


async def hostile(workspace: Workspace, code: str, *arguments: str) -> AgentProcess:
    async def ignore(chunk: bytes) -> None:
        pass

    command = (sys.executable, "-I", "-S", "-c", code, *arguments)
    process = await AgentProcess.start(
        AgentSettings(command=command),
        cwd=workspace.path,
        home=workspace.home,
        lease=DEADLINE,
        on_stderr=ignore,
        sandbox=workspace.sandbox,
    )
    async with asyncio.timeout(DEADLINE):
        assert await anext(process.lines()) == b"ready"
    return process


async def prepared(folder: Path, mode: str) -> tuple[Workspace, Path]:
    """Return a clone and the outside folder that the agent attacks."""
    outside = folder / "outside"
    outside.mkdir()
    (outside / "key").write_text("a key of another user")
    repo = make_repository(folder / "repo", a="one\n")
    workspace = await Workspace.prepare(folder / "data", RepoSource.of(str(repo)), job=1, run=1)
    return await workspace.with_sandbox(SandboxSettings.model_validate({"mode": mode})), outside


@attack(
    "An agent swaps folders of its clone with links to outside while a checkpoint reads them",
    surface="tree",
    with_sandbox="all its processes are stopped while the tree is read",
)
@pytest.mark.parametrize("mode", slow_except(["bwrap"], ["bwrap", "off"]))
async def test_a_swapped_folder_adds_no_outside_file(mode: str, tmp_path: Path) -> None:
    workspace, outside = await prepared(tmp_path, mode)
    async with await hostile(workspace, SWAP, str(outside)) as process:
        for number in range(ROUNDS):
            async with process.frozen():
                snapshot = await workspace.snapshot(f"round {number}")
            log = git("log", "-p", "-1", snapshot.commit, cwd=workspace.mirror)
            assert "another user" not in log
    await workspace.remove()


@attack(
    "An agent swaps folders of its clone with links to outside while an artifact is read",
    surface="tree",
    with_sandbox="links are not followed, and all its processes are stopped",
)
async def test_a_swapped_folder_is_no_artifact(tmp_path: Path) -> None:
    workspace, outside = await prepared(tmp_path, "bwrap")
    async with await hostile(workspace, SWAP, str(outside)) as process:
        for _ in range(READS):
            async with process.frozen():
                with contextlib.suppress(Failure):
                    assert await workspace.read_artifact("d1/sub/key") == b"mine"
    await workspace.remove()


@attack(
    "An agent forks continuously to avoid being stopped",
    surface="tree",
    with_sandbox="all its processes are stopped, or the checkpoint fails",
)
@pytest.mark.parametrize("mode", slow_except(["bwrap"], ["bwrap", "off"]))
async def test_a_tree_of_forks_is_stopped_or_not_read(mode: str, tmp_path: Path) -> None:
    workspace, _ = await prepared(tmp_path, mode)
    async with await hostile(workspace, FORKS) as process:
        count = workspace.path / "count"
        refused = None
        sizes: list[int] = []
        running: list[int] = []
        try:
            async with process.frozen():
                sizes.append(count.stat().st_size if count.exists() else 0)
                running = [
                    pid for pid in _live_descendants(process) if not process_tree.is_stopped(pid)
                ]
                await workspace.snapshot("frozen")
                sizes.append(count.stat().st_size if count.exists() else 0)
        except Failure as error:  # also at the end of the block, if a process ran in it
            refused = error.code
    assert refused == "not_frozen" or (refused, running, sizes[0]) == (None, [], sizes[-1])
    await workspace.remove()


async def test_an_agent_continues_after_its_tree_was_read(tmp_path: Path) -> None:
    workspace, _ = await prepared(tmp_path, "off")
    code = "print('ready', flush=True)\nfor line in iter(input, ''): print(line, flush=True)"
    async with await hostile(workspace, code) as process:
        with contextlib.suppress(ZeroDivisionError):
            async with process.frozen():
                assert [
                    pid for pid in _live_descendants(process) if not process_tree.is_stopped(pid)
                ] == []
                raise ZeroDivisionError
        await process.send(b"on\n")
        async with asyncio.timeout(DEADLINE):
            assert await anext(process.lines()) == b"on"
    await workspace.remove()


async def test_folders_of_runs_are_private_and_a_failed_prepare_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, _ = await prepared(tmp_path, "bwrap")
    for folder in (workspace.folder, workspace.folder.parent, tmp_path / "data" / "mirrors"):
        assert folder.stat().st_mode & 0o777 == 0o700
    await workspace.remove()

    async def broken(self: Workspace, work: str) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Workspace, "_clone", broken)
    with pytest.raises(OSError, match="no space left"):
        await Workspace.prepare(
            tmp_path / "data", RepoSource.of(str(tmp_path / "repo")), job=2, run=1
        )
    assert list((tmp_path / "data" / "runs").iterdir()) == []


@attack(
    "A timer of the agent continues it while its tree is read",
    surface="tree",
    with_sandbox="the guard detects that it ran: the checkpoint fails",
)
@pytest.mark.parametrize("mode", slow_except(["bwrap"], ["bwrap", "off"]))
async def test_an_agent_that_resumes_its_processes_is_detected(mode: str, tmp_path: Path) -> None:
    workspace, _ = await prepared(tmp_path, mode)
    refused = None
    async with await hostile(workspace, WAKES) as process, asyncio.timeout(DEADLINE):
        while refused is None:
            try:
                async with process.frozen():
                    for _ in range(SNAPSHOTS):  # longer than its timer
                        await workspace.snapshot("while it runs")
            except Failure as error:
                refused = error.code
    assert refused == "not_frozen"
    await workspace.remove()


def _live_descendants(process: AgentProcess) -> list[int]:
    """Return the processes below the keeper."""
    keeper = psutil.Process(process.pid).children()[0]
    return [pid for pid in process_tree.descendants(keeper.pid) if not process_tree.is_dead(pid)]
