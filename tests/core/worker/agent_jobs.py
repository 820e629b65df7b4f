"""Small agents of tests, their repositories, and workers that run them."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from draftsman.agent_runs.clones.git import git_environment
from draftsman.handlers import registry
from draftsman.runtime import Runtime
from draftsman.worker.worker_process import WorkerProcess
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.workers import running_worker, runtime_with, wait_for_question

Files = Mapping[str, str]
PRELUDE = """
import json, os, sys
def say(type, **fields):
    print(json.dumps({"type": type, **fields}), flush=True)
def hear():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)
def ask(key, text="Which?", **fields):
    fields = fields or {"choices": ["red", "blue"]}
    say("ask", id=key, key=key, text=text, **fields)
    return hear()
def parked(reply):
    if reply["type"] == "park":
        sys.exit(0)
    return reply
start = hear()
"""
"""The first lines of every test agent."""


def agent(code: str) -> dict[str, Any]:
    """Return the configuration of an agent that runs this code."""
    return {"command": ["{python}", "-I", "-S", "-c", PRELUDE + code]}


def git(*arguments: str, cwd: Path) -> str:
    """Run git with a neutral identity; return its output."""
    done = subprocess.run(
        ["git", *arguments], cwd=cwd, env=git_environment(), capture_output=True, check=True
    )
    return done.stdout.decode(errors="surrogateescape").strip()


def make_repository(path: Path, **files: str | bytes) -> Path:
    """Make a repository with a single commit."""
    shutil.copytree(_repository(tuple((files or {"a": "one\n"}).items())), path)
    return path


def commit_file(repository: Path, parent: str, name: str, text: str) -> str:
    """Return a commit that changes a file."""

    def feed(text: str, *command: str) -> str:
        done = subprocess.run(
            ["git", *command], cwd=repository, input=text.encode(), capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    blob = feed(text, "hash-object", "-w", "--stdin")
    tree = git("ls-tree", parent, cwd=repository).splitlines()
    rows = [row for row in tree if not row.endswith(f"\t{name}")]
    rows.append(f"100644 blob {blob}\t{name}")
    made = feed("\n".join(rows) + "\n", "mktree")
    return git("commit-tree", made, "-p", parent, "-m", "by a person", cwd=repository)


@functools.cache
def _repository(files: tuple[tuple[str, str | bytes], ...]) -> Path:
    """Return a repository of this process to copy, without the samples of hooks."""
    private = Path(tempfile.mkdtemp(prefix="draftsman-repository-"))
    atexit.register(shutil.rmtree, private)
    (folder := private / "repository").mkdir()
    git("init", "-q", "-bmain", "--template=", ".", cwd=folder)
    for name, content in files:
        data = content.encode() if isinstance(content, str) else content
        (folder / f"{name}.txt").write_bytes(data)
    git("add", "-A", cwd=folder)
    git("commit", "-qm", "first", cwd=folder)
    return folder


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of every file below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes()) for path in files
    }


@asynccontextmanager
async def agent_worker(
    rt: Runtime,
    data_dir: Path,
    code: str,
    *,
    leader: bool = False,
    slots: int = 2,
    **settings: Any,
) -> AsyncIterator[WorkerProcess]:
    """Run a worker with the agent `test` and the built-in handlers."""
    configured = runtime_with(rt, data_dir=data_dir, agents={"test": agent(code)}, **settings)
    async with running_worker(configured, registry.load({}), leader=leader, slots=slots) as process:
        yield process


async def submit_agent_job(make: Factory, repo: Path | str | None, **fields: Any) -> int:
    """Submit a job for the agent."""
    source = {} if repo is None else {"repo": str(repo)}
    values = {"type": "run_agent", "agent": "test", "queue": "default", "title": "Do it"}
    return await make.queued(**(values | source | fields))


async def job_at_gate(
    rt: Runtime, make: Factory, folder: Path, files: Files, changed: Files, **gate: Any
) -> tuple[int, bytes]:
    """Let an agent change files, save its work and ask for approval; return job and patch.

    `files` and `changed` are the contents by path; the worker has gone when it returns.
    """
    folder.mkdir(exist_ok=True)
    repo = make_repository(folder / "repo")
    for name, text in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text, encoding="utf-8")
    git("add", "-A", cwd=repo)
    git("commit", "-qm", "second", cwd=repo)
    notify = gate.pop("notify", ())
    approve = {"id": "g", "key": "push", "text": "Push it?"} | gate
    code = f"""
for name, text in {dict(changed)!r}.items():
    open(name, "w").write(text)
say("checkpoint", id="c", data=1); hear()
open("later.txt", "w").write("not in the checkpoint")
say("approve", **{approve!r})
parked(hear())
"""
    number = await submit_agent_job(make, repo, notify=notify)
    async with agent_worker(rt, folder / "data", code):
        await wait_for_question(rt, number)
    stored = await rt.changes.patch(number, 1)
    assert stored is not None
    patch = await rt.checkpoints.content(stored)
    assert b"later.txt" not in patch
    (folder / "patch").write_bytes(patch)
    if patch:
        git("apply", "--check", str(folder / "patch"), cwd=repo)
    return number, patch


def running_with(mark: str) -> list[list[str]]:
    """Return the command lines of the running processes that contain a mark.

    A process in the sandbox does not know its id out here.
    """
    lines = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    return [arguments for arguments in lines if any(mark in word for word in arguments)]


async def is_gone(pid: int) -> bool:
    """Return whether a process has ended; a zombie counts as ended."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


async def wait_for_exit(*pids: int) -> None:
    """Return once these processes have ended."""
    for pid in pids:
        await until(lambda pid=pid: is_gone(pid), f"the end of process {pid}")  # type: ignore[misc]


async def wait_for_clone(folder: Path, name: str) -> Path:
    """Return the running agent's clone below a folder, once the agent made this file in it."""

    def matching_files() -> list[Path]:
        try:
            paths = list(folder.glob(f"**/runs/*/repo/{name}"))
            return [path.parent for path in paths if path.stat().st_size]
        except FileNotFoundError:  # a folder was removed meanwhile
            return []

    async def look() -> bool:
        clones[:] = await asyncio.to_thread(matching_files)
        return bool(clones)

    clones: list[Path] = []
    await until(look, f"{name} in a clone")
    return clones[0]


async def wait_for_agent(folder: Path, name: str) -> int:
    """Return the agent of that clone, by its process id on this machine."""
    run = str((await wait_for_clone(folder, name)).parent)
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            line = " ".join(process.cmdline())
            # the paths of the plan are in hexadecimal, see `confinement.encode`
            if "sandbox.processes.guard" in line and run.encode().hex() in line:
                below = process.children(recursive=True)
                pids: list[int] = [child.pid for child in below if not _is_guard(child.cmdline())]
                if pids:
                    return pids[0]
    raise AssertionError(f"no agent runs in {run}")


def _is_guard(arguments: list[str]) -> bool:
    return (
        not arguments
        or arguments[0].endswith("bwrap")
        or "sandbox.processes.guard" in " ".join(arguments)
    )


async def wait_for_file(path: Path) -> str:
    """Return a file's content once it exists and ends with a newline."""

    async def look() -> bool:
        return path.exists() and path.read_text().endswith("\n")

    await until(look, str(path))
    return await asyncio.to_thread(path.read_text)
