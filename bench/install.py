"""Environments of the peers, in `.bench`: created on first use, kept until the pins change."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE.parent / ".bench"
LOCK = HERE / "peers.lock"
PACKAGES = HERE / "node" / "package.json"
PYTHON = ("pgqueuer", "procrastinate", "chancy", "absurd", "awa", "dbos")
NODE = ("graphile", "pgboss")
PEERS = (*PYTHON, *NODE)


@dataclass(frozen=True, slots=True)
class Program:
    """Command and environment of a queue's processes."""

    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


def ours() -> Program:
    """Return the program of draftsman: this interpreter."""
    return Program((sys.executable, "-m", "bench.peers.child"))


def programs(names: list[str]) -> tuple[dict[str, Program], dict[str, str]]:
    """Install the requirements of these peers; return programs, and the errors of failed peers."""
    installed: dict[str, Program] = {}
    missing: dict[str, str] = {}
    for known, install in ((PYTHON, _python), (NODE, _node)):
        if selected := [name for name in names if name in known]:
            try:
                installed |= dict.fromkeys(selected, install())
            except (OSError, subprocess.CalledProcessError) as error:
                missing |= dict.fromkeys(selected, _reason(error))
    return installed, missing


def _python() -> Program:
    folder = FOLDER / "python"
    python = folder / "bin" / "python"
    if _stale(folder, LOCK):
        print(f"bench: installing the peers of {LOCK.name} into {folder}", file=sys.stderr)
        _run(sys.executable, "-m", "venv", "--clear", str(folder))
        pip = (str(python), "-m", "pip", "install", "-q", "--require-hashes")
        try:
            _run(*pip, "-r", str(LOCK))
        except subprocess.CalledProcessError:
            _one_by_one((*pip, "--no-deps"), folder)
        _keep(folder, LOCK)
    return Program((str(python), "-m", "bench.peers.child"))


def _one_by_one(pip: tuple[str, ...], folder: Path) -> None:
    """Install each installable requirement; a peer without its own fails when it starts."""
    requirement = folder / "one.txt"
    for block in re.split(r"\n(?=[a-z])", LOCK.read_text()):
        if "==" in block.partition("\n")[0]:
            requirement.write_text(block)
            if subprocess.run(
                [*pip, "-r", str(requirement)], capture_output=True, check=False
            ).returncode:
                print(f"bench: cannot install {block.split()[0]}", file=sys.stderr)


def _node() -> Program:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise FileNotFoundError("there is no node with npm on the PATH")
    folder = FOLDER / "node"
    if _stale(folder, PACKAGES):
        print(f"bench: installing the peers of {PACKAGES.name} into {folder}", file=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGES, folder)
        quiet = ("--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--silent")
        _run(npm, "install", *quiet, "--prefix", str(folder))
        _keep(folder, PACKAGES)
    modules = {"NODE_PATH": str(folder / "node_modules")}
    return Program((node, str(HERE / "node" / "child.cjs")), modules)


def _stale(folder: Path, pins: Path) -> bool:
    stamp = folder / ".pins"
    return not stamp.exists() or stamp.read_text() != _digest(pins)


def _keep(folder: Path, pins: Path) -> None:
    (folder / ".pins").write_text(_digest(pins))


def _digest(pins: Path) -> str:
    return f"{HERE} {hashlib.sha256(pins.read_bytes()).hexdigest()}"


def _run(*command: str) -> None:
    subprocess.run(command, capture_output=True, text=True, check=True)


def _reason(error: OSError | subprocess.CalledProcessError) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = [line for line in str(error.stderr).splitlines() if line.strip()]
        return lines[-1].strip() if lines else f"{error.cmd[0]} failed"
    return str(error)
