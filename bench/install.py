"""Environments of the peers, in `.bench`: created on first use, kept until the pins change."""

from __future__ import annotations

import atexit
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from bench.queue_process import ROOT
from tests.support.locked_environment import is_stale, keep, python_of, run

HERE = Path(__file__).parent
FOLDER = ROOT / ".bench"
LOCK = HERE / "peers.lock"
OBAN_LOCK = HERE / "oban.lock"
PACKAGES = HERE / "node" / "package.json"
PYTHON = ("pgqueuer", "procrastinate", "chancy", "absurd", "awa", "dbos")
OBAN = ("oban",)
NODE = ("graphile", "pgboss")
CELERY = ("celery",)
PEERS = (*PYTHON, *OBAN, *NODE, *CELERY)
OBAN_PYTHON = (3, 12)
"""Oldest Python that oban supports; draftsman also supports older versions."""
NEWER = ("python3.14", "python3.13", "python3.12")


@dataclass(frozen=True, slots=True)
class Program:
    """Command and environment of a queue's processes."""

    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    folder: Path = ROOT
    """Where it runs, and Python finds its package `bench`."""


def ours() -> Program:
    """Return the program of draftsman: this interpreter."""
    return Program((sys.executable, "-m", "bench.peers.child"))


def programs(names: list[str]) -> tuple[dict[str, Program], dict[str, str]]:
    """Install the requirements of these peers; return programs, and the errors of failed peers."""
    installed: dict[str, Program] = {}
    missing: dict[str, str] = {}
    for known, install in ((PYTHON, _python), (OBAN, _oban), (NODE, _node), (CELERY, _celery)):
        if selected := [name for name in names if name in known]:
            try:
                installed |= dict.fromkeys(selected, install())
            except (OSError, subprocess.CalledProcessError) as error:
                missing |= dict.fromkeys(selected, _reason(error))
    return installed, missing


def _python() -> Program:
    return _environment(FOLDER / "python", LOCK, sys.executable)


def _oban() -> Program:
    """Run it with the bench's own Python, or with a newer version of the PATH."""
    folder = FOLDER / "oban"
    if sys.version_info >= OBAN_PYTHON or not is_stale(folder, OBAN_LOCK):
        return _environment(folder, OBAN_LOCK, sys.executable)
    newer = next((name for name in NEWER if _works(name)), None)
    if newer is None:
        own = platform.python_version()
        oldest = ".".join(map(str, OBAN_PYTHON))
        raise FileNotFoundError(
            f"it needs Python {oldest} or later; this is {own}, and none is on the PATH"
        )
    return _environment(folder, OBAN_LOCK, newer)


def _environment(folder: Path, lock: Path, interpreter: str) -> Program:
    python = python_of(folder, lock, interpreter)
    return Program((str(python), "-m", "bench.peers.child"))


def _celery() -> Program:
    """Start a Redis without persistence, until this process ends."""
    server = shutil.which("redis-server")
    if server is None:
        raise FileNotFoundError("there is no redis-server on the PATH")
    program = _python()
    folder = Path(tempfile.mkdtemp(prefix="bench-redis-"))
    options = ("--port", "0", "--unixsocket", str(folder / "redis"), "--save", "")
    redis = subprocess.Popen([server, *options], cwd=folder, stdout=subprocess.DEVNULL)
    atexit.register(shutil.rmtree, folder)
    atexit.register(redis.wait)
    atexit.register(redis.terminate)
    return Program(program.command, {"BENCH_REDIS": f"redis+socket://{folder}/redis"})


def _node() -> Program:
    node = shutil.which("node")
    npm = shutil.which("npm")
    if node is None or npm is None:
        raise FileNotFoundError("there is no node with npm on the PATH")
    folder = FOLDER / "node"
    if is_stale(folder, PACKAGES):
        print(f"bench: installing the peers of {PACKAGES.name} into {folder}", file=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGES, folder)
        quiet = ("--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--silent")
        run(npm, "install", *quiet, "--prefix", str(folder))
        keep(folder, PACKAGES)
    modules = {"NODE_PATH": str(folder / "node_modules")}
    return Program((node, str(HERE / "node" / "child.cjs")), modules)


def _works(interpreter: str) -> bool:
    """Return whether a program runs: a shim of a version manager may stand for no program."""
    try:
        run(interpreter, "-c", "pass")
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _reason(error: OSError | subprocess.CalledProcessError) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = [line for line in str(error.stderr).splitlines() if line.strip()]
        return lines[-1].strip() if lines else f"{error.cmd[0]} failed"
    return str(error)
