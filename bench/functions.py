"""Drains by a declared function: in the event loop, in threads, in processes."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bench import measure
from bench.measure import Run
from bench.report import Figures

SHARES: Final = {"loop": 2, "thread": 2, "process": 20}
"""Where a function runs, and which part of the jobs of the largest drain: processes are slow."""


async def drain(run: Run, function: str) -> Figures:
    """Drain a full queue whose function runs there."""
    return await measure.drain(replace(run, extra={"function": function}))
