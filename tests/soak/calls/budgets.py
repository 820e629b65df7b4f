"""Budgets: reservations and usage of calls, and raises."""

from __future__ import annotations

from typing import Final

from draftsman.domain.budgets import CallEstimate
from draftsman.domain.ids import new_id
from draftsman.store import budgets
from draftsman.store.postgres.database import Connection
from tests.soak.calls.call import RUNNING, Call

RUN: Final = RUNNING[0]
OWN: Final = {"cost_usd": 5.0}


async def _call(conn: Connection) -> None:
    """Reserve a call, record its usage, reserve another and release it."""
    estimate, first, second = CallEstimate("m", 10, 10, 0.5), new_id(), new_id()
    assert await budgets.reserve(conn, RUN, first, estimate, OWN)
    assert await budgets.record(conn, RUN, {"cost_usd": 1}, "m", first, OWN) == []
    assert await budgets.reserve(conn, RUN, second, estimate, OWN)
    await budgets.release(conn, second)


_CALL: Final = Call(_call)
CALLS: Final[dict[str, Call]] = {
    "budgets.reserve": _CALL,
    "budgets.record": _CALL,
    "budgets.release": _CALL,
    "budgets.add": Call(lambda conn: budgets.add(conn, RUN, 1, 5.0)),
}
