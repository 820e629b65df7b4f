"""Budgets: reservations and usage of calls, raises, configuration and costs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from draftsman.costs.budgets import BudgetState, BudgetUse, CallEstimate, Cost, CostGroup
from draftsman.database.database import Connection, execute, fetch_all, scalar
from draftsman.database.named_queries import load
from draftsman.jobs.job import TERMINAL, Status
from draftsman.jobs.runs.run import LeaderTerm, Lease

MAX_JOBS: Final = 200
"""Jobs of each status whose budgets are listed, the newest."""
_STARTED: Final = sorted(frozenset(Status) - TERMINAL - {Status.QUEUED})
"""Statuses of unfinished jobs that may have run."""
_Q = load(__name__)


async def reserve(
    conn: Connection,
    lease: Lease,
    call: UUID | None,
    estimate: CallEstimate,
    profile_budget: Mapping[str, float] | None,
) -> BudgetState | None:
    """Reserve the estimate of a call, or only check the budgets; None after a lost lease."""
    params = {
        "job": lease.job,
        "token": lease.token,
        "call": call,
        "cost_usd": estimate.cost_usd,
        "input_tokens": estimate.input_tokens,
        "output_tokens": estimate.output_tokens,
        "own": None if profile_budget is None else Jsonb(profile_budget),
    }
    states = await fetch_all(conn, _Q["reserve"], params, BudgetState)
    return states[0] if states else None


async def record(
    conn: Connection,
    lease: Lease,
    usage: Mapping[str, Any],
    model: str | None = None,
    call: UUID | None = None,
    profile_budget: Mapping[str, float] | None = None,
) -> list[BudgetState] | None:
    """Record the usage of a run so far; return used-up budgets, None after a lost lease."""
    params = {
        "job": lease.job,
        "token": lease.token,
        "usage": Jsonb(usage),
        "model": model,
        "call": call,
        "own": None if profile_budget is None else Jsonb(profile_budget),
    }
    states = await fetch_all(conn, _Q["record"], params, BudgetState)
    return states[1:] if states else None


async def release(conn: Connection, call: UUID) -> None:
    """End the reservation of a call that used nothing."""
    await execute(conn, _Q["release"], {"call": call})


async def add(conn: Connection, lease: Lease, question: int, amount: float) -> bool | None:
    """Add an answered amount to its budget; False if it was added, None after a lost lease."""
    params = {"job": lease.job, "token": lease.token, "question": question, "amount": amount}
    return await scalar(conn, _Q["add"], params)  # type: ignore[no-any-return]


async def configure(
    conn: Connection, term: LeaderTerm, rules: Sequence[dict[str, Any]], timezone: str
) -> bool:
    """Replace the budgets; False when they are the same, or the term is over."""
    params = {"owner": term.owner, "term": term.term, "budgets": json.dumps(rules)}
    return bool(await scalar(conn, _Q["configure"], params | {"timezone": timezone}))


async def release_lost(conn: Connection, term: LeaderTerm, limit: int) -> int:
    """Delete the reservations of runs that have lost their lease; return their number."""
    return await execute(conn, _Q["release_lost"], term.params(limit))


async def uses(conn: Connection) -> list[BudgetUse]:
    """Return the budgets with their use today, and those of unfinished jobs, by name.

    The leader writes the configured budgets; the jobs are the newest 200 of each status.
    """
    params = {"statuses": [str(status) for status in _STARTED], "limit": MAX_JOBS}
    return await fetch_all(conn, _Q["uses"], params, BudgetUse)


async def costs(conn: Connection, by: CostGroup, days: int, until: int = 0) -> list[Cost]:
    """Return the costs of the last days, the highest first; by day, in order.

    The last `until` days are left out.
    """
    return await fetch_all(conn, _Q["costs"], {"by": by, "days": days, "until": until}, Cost)
