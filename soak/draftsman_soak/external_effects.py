"""Simulated external system: idempotent effects and the requests for them.

    FOLDER/<job>/<invocation id>    the effect: key and value, written atomically
    FOLDER/<job>/requests           a line before each request, and after each recorded result

A repeated invocation id creates no second effect and returns the first value, as the idempotency
keys of a payment provider do.
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
    """A line: run `run` requests the effect `key`, or has `recorded` its result."""

    run: int
    key: str
    recorded: bool


@dataclass(frozen=True, slots=True)
class Effects:
    """Effects of a job: (key, value) by invocation id, and the requests in order."""

    created: dict[str, tuple[str, str]] = field(default_factory=dict)
    requests: tuple[EffectRequest, ...] = ()


class ExternalSystem:
    """The effects of a job."""

    def __init__(self, folder: Path, job: int) -> None:
        self._folder = folder / str(job)

    def make(self, run: int, key: str, invocation: str) -> str:
        """Create the effect of an invocation id unless it exists; return its value."""
        self._note(f"ask {run} {key}")
        value = uuid4().hex
        draft = self._folder / f".{value}"
        draft.write_text(f"{key} {value}\n")
        with contextlib.suppress(FileExistsError):
            os.link(draft, self._folder / invocation)
        draft.unlink()
        return self.find(invocation) or value

    def find(self, invocation: str) -> str | None:
        """Return the value of an invocation id, or None."""
        try:
            return (self._folder / invocation).read_text().split()[1]
        except FileNotFoundError:
            return None

    def recorded(self, run: int, key: str) -> None:
        """Log that the run recorded the result: no later run may request the effect."""
        self._note(f"has {run} {key}")

    def _note(self, line: str) -> None:
        """Append a line in a single write, which a kill cannot split."""
        self._folder.mkdir(parents=True, exist_ok=True)
        file = os.open(self._folder / REQUESTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, f"{line}\n".encode())
        finally:
            os.close(file)


def read_effects(folder: Path, job: int) -> Effects:
    """Return the effects and requests of a job."""
    job_folder = folder / str(job)
    if not job_folder.is_dir():
        return Effects()
    created = {}
    for path in job_folder.iterdir():
        if path.name != REQUESTS and not path.name.startswith("."):
            key, value = path.read_text().split()
            created[path.name] = (key, value)
    with contextlib.suppress(FileNotFoundError):
        lines = (line.split() for line in (job_folder / REQUESTS).read_text().splitlines())
        return Effects(
            created, tuple(EffectRequest(int(run), key, verb == "has") for verb, run, key in lines)
        )
    return Effects(created)
