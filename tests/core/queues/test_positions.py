"""Positions of a queue: no sequence of moves exhausts them, or makes two of them equal."""

from __future__ import annotations

from typing import Any, Final

import psycopg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from draftsman.people.actor import Actor
from draftsman_testing.factories import Factory
from tests.support.server import Server

JOBS: Final = 12
_job = st.integers(0, JOBS - 1)
_place = st.sampled_from(["before", "after", "before", "after", "top", "bottom"])
_moves = st.one_of(
    st.lists(st.tuples(_job, _place, _job), min_size=1, max_size=24),
    # all into one gap, which halves with each move
    st.tuples(_job, st.sampled_from(["before", "after"])).map(
        lambda gap: [(number % JOBS, gap[1], gap[0]) for number in range(24)]
    ),
)
_POSITIONS: Final = "SELECT number, position, priority FROM draftsman.job_states ORDER BY position"
_SPREAD: Final = """
UPDATE draftsman.job_states s
   SET position = 1 + w.place * %(gap)s, priority = w.place %% %(priorities)s
  FROM (SELECT number, row_number() OVER (ORDER BY position) AS place
          FROM draftsman.job_states) w
 WHERE w.number = s.number
"""


async def test_moves_neither_exhaust_positions_nor_make_them_equal(
    server: Server, database: str, make: Factory, owner: Actor
) -> None:
    """The positions begin 1 to 100 apart, so that a gap is used up at once, or by halving."""
    for _ in range(JOBS - 2):
        await make.queued(queue="q")
    running = [(await make.running(await make.queued(queue="q", priority=9))).number for _ in "ab"]

    with psycopg.connect(server.url(database)) as conn:

        @given(moves=_moves, gap=st.sampled_from([1, 2, 3, 100]), priorities=st.integers(1, 2))
        @settings(
            max_examples=12,
            deadline=None,
            database=None,
            suppress_health_check=[HealthCheck.too_slow],
        )
        def keep_the_order(moves: list[tuple[int, str, int]], gap: int, priorities: int) -> None:
            with conn.transaction(force_rollback=True):
                conn.execute(_SPREAD, {"gap": gap, "priorities": priorities})
                _check(conn, moves, running, owner.name)

        keep_the_order()


def _check(
    conn: psycopg.Connection[Any], moves: list[tuple[int, str, int]], running: list[int], actor: str
) -> None:
    rows = conn.execute(_POSITIONS).fetchall()
    order = [row[0] for row in rows]
    priority = {row[0]: row[2] for row in rows}
    numbers = sorted(order)
    for moved, place, other in moves:
        job = numbers[moved]
        anchor = numbers[other]
        if job in running or anchor in running or (job == anchor and place in ("before", "after")):
            continue
        claimed = sorted((n for n in order if n not in running), key=lambda n: -priority[n])
        anchor = {"top": claimed[0], "bottom": claimed[-1]}.get(place, anchor)
        conn.execute("SELECT draftsman.move_job(%s, %s, %s, %s)", (job, place, anchor, actor))
        if job != anchor:
            order.remove(job)
            order.insert(order.index(anchor) + (place in ("after", "bottom")), job)
            priority[job] = priority[anchor]
    rows = conn.execute(_POSITIONS).fetchall()
    positions = [row[1] for row in rows]
    assert [row[0] for row in rows] == order
    assert len(set(positions)) == JOBS, "equal positions"
    newest = conn.execute("SELECT last_value FROM draftsman.job_positions").fetchone()
    assert newest is not None
    assert positions[-1] <= newest[0], "a new job would not be the last"
