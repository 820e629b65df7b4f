"""Attacks on the boundary between a worker and a sandbox."""

from __future__ import annotations

import contextlib
import os
import pty
from collections.abc import Mapping
from pathlib import Path

import pytest

from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.tree_removal import remove_tree
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.agent_runs.validation.commands import CommandRunner
from draftsman.errors import Failure
from draftsman.sandbox import mode_detection
from draftsman.sandbox.failed_modes import PROBE_TOO_SLOW
from draftsman.sandbox.processes.process import AgentProcess
from draftsman.sandbox.run_sandbox import open_run_sandbox
from draftsman.settings.agents import AgentSettings
from draftsman.settings.profiles import CommandSettings
from draftsman.settings.quotas import QuotaSettings
from draftsman.settings.sandbox import SandboxSettings
from tests.attacks.catalog import attack
from tests.core.worker.agent_jobs import make_repository

DEADLINE = 60.0


async def run(
    mode: str, folder: Path, *command: str, env: Mapping[str, str] | None = None
) -> tuple[str, int]:
    """Return the output of a program in the sandbox, and the guard's process id."""

    async def ignore(chunk: bytes) -> None:
        pass

    settings = SandboxSettings.model_validate({"mode": mode, "file_size_mb": 16})
    sandbox = await open_run_sandbox(settings, repo=folder / "repo", home=folder / "home")
    with contextlib.closing(sandbox):
        async with await AgentProcess.start(
            AgentSettings(command=command, env=dict(env or {})),
            cwd=folder / "repo",
            home=folder / "home",
            lease=DEADLINE,
            on_stderr=ignore,
            sandbox=sandbox,
        ) as process:
            chunks = [chunk async for chunk in process.chunks()]
            await process.wait()
            return b"".join(chunks).decode().strip(), process.pid


@attack(
    "A clone contains libraries in the LD_LIBRARY_PATH of its profile",
    surface="process",
    with_sandbox="guard, keeper and bwrap do not get the program's environment",
)
@pytest.mark.parametrize("mode", ["bwrap", "off"])
async def test_the_guard_ignores_the_environment_of_the_program(mode: str, tmp_path: Path) -> None:
    env = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": "trace", "OWN": "ä = 1"}
    printed, guard = await run(mode, tmp_path, "sh", "-c", 'echo "$OWN $LD_DEBUG"', env=env)
    assert printed == "ä = 1 libs"
    assert not (tmp_path / "repo" / f"trace.{guard}").exists()


@attack(
    "A program fills the machine's memory with files in tmpfs",
    surface="quota",
    with_sandbox="/tmp and /dev/shm have a limit; the other folders are read-only",
    without_sandbox="there is no private tmpfs",
)
async def test_folders_in_memory_are_read_only_or_limited(tmp_path: Path) -> None:
    code = """
for folder in / /dev /etc /home /workspace; do touch $folder/x 2>/dev/null && echo $folder; done
for folder in /tmp /dev/shm; do
  for n in 1 2 3; do head -c 8000000 /dev/zero 2>/dev/null > $folder/$n || echo "full $folder"; done
done"""
    printed, _ = await run("bwrap", tmp_path, "sh", "-c", code)
    assert printed.split("\n") == ["full /tmp", "full /dev/shm"]


DEEP = """
path=$(printf 'd/%.0s' $(seq 1500))
mkdir -p $path && chmod 0 $path && echo deep"""


@attack(
    "A program leaves folders deeper than Python's stack, unreadable folders and links to outside",
    surface="tree",
    with_sandbox="they are deleted with the run; no link is followed",
)
async def test_a_deep_tree_is_deleted(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    outside.chmod(0o755)
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "link").symlink_to(outside)
    (tmp_path / "repo" / "hard").hardlink_to(outside / "file")
    printed, _ = await run("bwrap", tmp_path, "sh", "-c", DEEP)
    assert printed == "deep"
    open_files = len(list(Path("/proc/self/fd").iterdir()))
    remove_tree(tmp_path / "repo")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "outside"]
    assert (outside / "file").exists()
    assert outside.stat().st_mode & 0o777 == 0o755
    assert len(list(Path("/proc/self/fd").iterdir())) == open_files


@attack(
    "An agent reads the terminal and the shared memory of its worker's user",
    surface="process",
    with_sandbox="not visible in bwrap, refused in Landlock; under root, agents have another user",
    without_sandbox="allowed to the worker's own user",
)
@pytest.mark.parametrize("mode", ["bwrap", "landlock"])
async def test_terminals_and_shared_memory_are_private(mode: str, tmp_path: Path) -> None:
    person, terminal = pty.openpty()
    shared = Path("/dev/shm") / f"draftsman-attack-{os.getpid()}"
    try:
        os.write(person, b"typed\n")
        shared.touch(0o600)
        shared.write_text("secret\n")
        name = os.ttyname(terminal)
        code = f"head -n1 {name}; head -n1 {shared}; echo end"
        printed, _ = await run(mode, tmp_path, "sh", "-c", code)
    finally:
        shared.unlink()
        os.close(person)
        os.close(terminal)
    assert printed == "end"


@attack(
    "A command of a profile runs code of an agent that fills the disk",
    surface="quota",
    with_sandbox="the command is killed, and the run fails with the reason",
)
async def test_a_command_that_fills_the_disk_is_killed(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source", a="one\n")
    workspace = await Workspace.prepare(tmp_path / "data", RepoSource.of(str(source)), job=1, run=1)
    workspace = await workspace.with_sandbox(SandboxSettings())
    quotas = QuotaSettings(disk_bytes=4_000_000, disk_interval=0.1)
    runner = CommandRunner(workspace, "", {}, DEADLINE, quotas=quotas)
    fill = ("sh", "-c", "head -c 8000000 /dev/zero > full; exec sleep 600")
    with pytest.raises(Failure, match="more than 4,000,000 bytes") as raised:
        await runner.run(CommandSettings(name="fill", command=fill, timeout=DEADLINE))
    assert raised.value.code == "quota:disk"
    await workspace.remove()


@attack(
    "A program of the repository is a link with another target outside of the sandbox",
    surface="tree",
    with_sandbox="the outside target is not mounted",
    without_sandbox="allowed to the worker's own user",
)
@pytest.mark.parametrize("mode", ["bwrap", "landlock"])
async def test_a_linked_program_opens_no_file_outside(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = tmp_path / "repo"
    outside = tmp_path / "outside"
    for folder, text in ((repo, f"cat {outside}/run; echo end"), (outside, "echo secret")):
        folder.mkdir()
        (folder / "run").write_text(f"#!/bin/sh\n{text}\n")
        (folder / "run").chmod(0o755)
    (repo / "check").symlink_to("/proc/self/cwd/run")
    monkeypatch.chdir(outside)
    printed, _ = await run(mode, tmp_path, str(repo / "check"))
    assert printed == "end"


@attack(
    "High load makes the probe of the strongest mode time out",
    surface="process",
    with_sandbox="that run uses the next working mode; the next run probes again",
)
async def test_a_slow_probe_weakens_one_run_only(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = SandboxSettings(memory_mb=1234)
    with monkeypatch.context() as busy:
        busy.setattr(
            mode_detection,
            "find_escape",
            lambda _, mode, __: PROBE_TOO_SLOW if mode == "bwrap" else None,
        )
        assert (await mode_detection.detect_mode(settings)).mode == "landlock"
    monkeypatch.setattr(mode_detection, "find_escape", lambda *_: None)
    assert (await mode_detection.detect_mode(settings)).mode == "bwrap"
