"""Limits of tests: their configuration, and the jobs that have places."""

from __future__ import annotations

import json
from typing import Any

from draftsman.database.database import Connection
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from draftsman.settings.limits import UsageSettings
from tests.support.statements import rows, run


async def set_limits(rt: Runtime, conn: Connection, **scopes: Any) -> None:
    """Replace the limits, as the leader does, and apply them to the jobs that exist."""
    rules = json.dumps(UsageSettings.model_validate(scopes).rules())
    await run(conn, "SELECT draftsman.set_limits(%s::jsonb, 'system')", (rules,))
    await rt.sweeps.run("limits", LeaderTerm())


async def placed(conn: Connection) -> list[int]:
    """Return the jobs that have their places."""
    found = await rows(
        conn,
        "SELECT number FROM draftsman.job_states s WHERE draftsman.has_place(s) ORDER BY number",
    )
    return [number for (number,) in found]


async def waiting(conn: Connection) -> dict[int, str]:
    """Return what each job waits for."""
    found = await rows(
        conn, "SELECT number, held_by FROM draftsman.job_states WHERE held_by IS NOT NULL"
    )
    return dict(found)


async def check_places(rt: Runtime) -> None:
    """Assert that each bucket counts its jobs."""
    broken = await rt.read_model.invariants()
    assert {name: rows for name, rows in broken.items() if rows} == {}
