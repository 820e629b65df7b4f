"""The world outside: effects that a kill can hit, and everybody who asked for one.

    FOLDER/<job>/<invocation id>    the effect: its key and its value, made whole or not at all
    FOLDER/<job>/requests           a line for each request before, and each record after it

It is like a good payment provider: the same invocation id again makes nothing, and gets what was
made the first time.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import uuid4

REQUESTS: Final = "requests"


@dataclass(frozen=True, slots=True)
class EffectRequest:
    """One line: run `run` was about to ask for the effect `key`, or has it `recorded`."""

    run: int
    key: str
    recorded: bool


@dataclass(frozen=True, slots=True)
class Effects:
    """What was made for one job: (key, value) by invocation id, and the requests in order."""

    made: dict[str, tuple[str, str]] = field(default_factory=dict)
    requests: tuple[EffectRequest, ...] = ()


class ExternalSystem:
    """The effects of one job."""

    def __init__(self, folder: Path, job: int) -> None:
        self._folder = folder / str(job)

    def make(self, run: int, key: str, invocation: str) -> str:
        """Make the effect of this invocation id once; return its value."""
        self._note(f"ask {run} {key}")
        value = uuid4().hex
        draft = self._folder / f".{value}"
        draft.write_text(f"{key} {value}\n")
        with contextlib.suppress(FileExistsError):
            os.link(draft, self._folder / invocation)
        draft.unlink()
        return self.find(invocation) or value

    def find(self, invocation: str) -> str | None:
        """Return the value that was made for an invocation id, if one was."""
        try:
            return (self._folder / invocation).read_text().split()[1]
        except FileNotFoundError:
            return None

    def recorded(self, run: int, key: str) -> None:
        """Note that the run has the effect on record: no later run may ask for it."""
        self._note(f"has {run} {key}")

    def _note(self, line: str) -> None:
        """Write a line whole or not at all: one write, which no kill can cut."""
        self._folder.mkdir(parents=True, exist_ok=True)
        file = os.open(self._folder / REQUESTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, f"{line}\n".encode())
        finally:
            os.close(file)


def read_effects(folder: Path, job: int) -> Effects:
    """Return what was made for a job."""
    place = folder / str(job)
    if not place.is_dir():
        return Effects()
    made = {}
    for path in place.iterdir():
        if path.name != REQUESTS and not path.name.startswith("."):
            key, value = path.read_text().split()
            made[path.name] = (key, value)
    with contextlib.suppress(FileNotFoundError):
        lines = (line.split() for line in (place / REQUESTS).read_text().splitlines())
        return Effects(
            made, tuple(EffectRequest(int(run), key, verb == "has") for verb, run, key in lines)
        )
    return Effects(made)
