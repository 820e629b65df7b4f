"""Short soak runs: real processes on their own installation, and their remains."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import psutil

from tests.acceptance.processes import Installation, Process

SHORT_RUN = ("--minutes", "0.04")
PATIENCE = 100.0
"""Seconds after which a short soak run is stuck, since it loads all of the machine."""
NOT_THERE = "postgresql://nobody@127.0.0.1:1/theirs"
"""URL of a user's database: a soak that connects to it fails."""


def soak(installation: Installation, temporary: Path, *args: str) -> Process:
    """Start a soak whose folder will be in `temporary`."""
    env = {"TMPDIR": str(temporary), "DRAFTSMAN_DATABASE_URL": NOT_THERE}
    return installation.start("soak", *args, env=env)


async def code_of(started: Process) -> int:
    """Return its exit code, after it settled, stopped its workers and checked the results."""
    return await asyncio.to_thread(started.popen.wait, PATIENCE)


def left(temporary: Path) -> list[str]:
    """Return the command lines of the processes that mention the folder."""
    commands = []
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or ())
        named = str(temporary) in words or str(temporary).encode().hex() in words  # of a guard
        if named and process.pid != os.getpid():
            commands.append(words)
    return commands
