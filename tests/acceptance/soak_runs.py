"""Soaks of a moment: real processes, on a place of their own, and what they leave."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import psutil

from tests.acceptance.processes import Installation, Process

SHORT_RUN = ("--minutes", "0.05")
PATIENCE = 100.0
"""Seconds after which a soak of a moment counts as stuck: it fills the machine by itself."""
NOT_THERE = "postgresql://nobody@127.0.0.1:1/theirs"
"""A database of the user's: a soak that went near it would say that it is not there."""


def soak(place: Installation, temporary: Path, *args: str, through: Sequence[str] = ()) -> Process:
    """Start a soak whose folder will be in `temporary`, through another program if wanted."""
    env = {"TMPDIR": str(temporary), "DRAFTSMAN_DATABASE_URL": NOT_THERE}
    return place.start("soak", *args, env=env, through=through)


async def code_of(started: Process) -> int:
    """Return its exit code: it settles, stops its workers and looks, which takes a while."""
    return await asyncio.to_thread(started.popen.wait, PATIENCE)


def left(temporary: Path) -> list[str]:
    """Return the processes that have to do with the folder, by their command lines."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or ())
        if str(temporary) in words and process.pid != os.getpid():
            found.append(words)
    return found
