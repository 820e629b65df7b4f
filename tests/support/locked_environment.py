"""Virtual environments with locked packages: created on first use, kept until the pins change."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

PINS: Final = ".pins"


def python_of(folder: Path, lock: Path, interpreter: str = sys.executable) -> Path:
    """Return the interpreter of an environment with the packages of a lock; create it if needed.

    Raises CalledProcessError if the environment cannot be created. A package that cannot be
    installed is named on stderr, and left out.
    """
    python = folder / "bin" / "python"
    if is_stale(folder, lock):
        print(f"installing {lock.name} into {folder}", file=sys.stderr)  # noqa: T201
        run(interpreter, "-m", "venv", "--clear", str(folder))
        pip = (str(python), "-m", "pip", "install", "-q", "--require-hashes")
        try:
            run(*pip, "-r", str(lock))
        except subprocess.CalledProcessError:
            _one_by_one((*pip, "--no-deps"), lock, folder)
        keep(folder, lock)
    return python


def is_stale(folder: Path, pins: Path) -> bool:
    """Return whether a folder was not filled by these pins, or was moved since."""
    stamp = folder / PINS
    return not stamp.exists() or stamp.read_text() != _digest(folder, pins)


def keep(folder: Path, pins: Path) -> None:
    """Note that a folder was filled by these pins."""
    (folder / PINS).write_text(_digest(folder, pins))


def run(*command: str) -> None:
    """Run a program; raises CalledProcessError with its output."""
    subprocess.run(command, capture_output=True, text=True, check=True)


def _one_by_one(pip: tuple[str, ...], lock: Path, folder: Path) -> None:
    requirement = folder / "one.txt"
    for block in re.split(r"\n(?=[a-z])", lock.read_text()):
        if "==" in block.partition("\n")[0]:
            requirement.write_text(block)
            if subprocess.run(
                [*pip, "-r", str(requirement)], capture_output=True, check=False
            ).returncode:
                print(f"cannot install {block.split()[0]}", file=sys.stderr)  # noqa: T201


def _digest(folder: Path, pins: Path) -> str:
    return f"{folder} {hashlib.sha256(pins.read_bytes()).hexdigest()}"
