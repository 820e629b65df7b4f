"""Drains of a queue with limits, as ratios to the plain drain in the same run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

from bench import measure
from bench.measure import Run
from bench.report import Figures
from bench.server import BenchError, session
from draftsman.settings.limits import UsageSettings

LIMITS: Final[dict[str, dict[str, Any]]] = {
    "wide": {"all": {"running": 1_000_000}},
    "of 10": {"all": {"running": 10}},
    "of 100": {"all": {"running": 100}},
    "rate": {"person": {"*": {"rate": "1000000/1h"}}},
}
"""Limits that never bind, that bind at the number of slots, and a rate of each person."""
PERSONS: Final = 1_000
"""Persons who submit the jobs in turn, so that hardly two jobs of a claim have a common bucket."""
APPLIED: Final = """
    SELECT draftsman.check_limits(1000) = 0
       AND NOT EXISTS (SELECT FROM draftsman.limit_changes WHERE checked_to IS NOT NULL)"""
"""Whether the passes after a change of the limits are over, which a worker would make meanwhile."""


async def drain(run: Run, name: str, persons: int = 1) -> Figures:
    """Drain a full queue whose jobs have a limit, which the leader finds unchanged and applied."""
    rules = json.dumps(UsageSettings.model_validate(LIMITS[name]).rules())
    async with session(run.url) as fresh:
        await fresh.conn.execute("SELECT draftsman.set_limits(%s::jsonb, 'system')", (rules,))
        await fresh.until(APPLIED, "the limits of all jobs")
    extra = {"limits": LIMITS[name], "persons": persons}
    figures = await measure.drain(replace(run, extra=extra))
    async with session(run.url) as database:
        buckets = await database.value("SELECT count(*) FROM draftsman.limit_buckets")
    if buckets != min(persons, run.jobs):
        raise BenchError(f"the jobs have {buckets} buckets, not those of {persons} persons")
    return figures
