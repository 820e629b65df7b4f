"""Budgets: reservations and usage of calls, and raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from draftsman.domain.budgets import BudgetState, CallEstimate
from draftsman.domain.run import Lease
from draftsman.store.postgres.database import Connection, execute, fetch_all, scalar
from draftsman.store.queries import load

_Q = load("budgets")


async def reserve(
    conn: Connection,
    lease: Lease,
    call: UUID | None,
    estimate: CallEstimate,
    own: Mapping[str, float] | None,
) -> BudgetState | None:
    """Reserve the estimate of a call, or only check the budgets; None after a lost lease."""
    params = {
        "job": lease.job,
        "token": lease.token,
        "call": call,
        "cost_usd": estimate.cost_usd,
        "input_tokens": estimate.input_tokens,
        "output_tokens": estimate.output_tokens,
        "own": None if own is None else Jsonb(own),
    }
    states = await fetch_all(conn, _Q["reserve"], params, BudgetState)
    return states[0] if states else None


async def record(
    conn: Connection,
    lease: Lease,
    usage: Mapping[str, Any],
    model: str | None = None,
    call: UUID | None = None,
    own: Mapping[str, float] | None = None,
) -> list[BudgetState] | None:
    """Record the usage of a run so far; return used-up budgets, None after a lost lease."""
    params = {
        "job": lease.job,
        "token": lease.token,
        "usage": Jsonb(usage),
        "model": model,
        "call": call,
        "own": None if own is None else Jsonb(own),
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
