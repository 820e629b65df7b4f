"""Maintenance, workers, the schema, and invariants."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, LiteralString
from uuid import UUID

from draftsman.database import schema
from draftsman.database.database import Connection, rows
from draftsman.database.named_queries import load
from draftsman.database.selection import ALL, Selection
from draftsman.deliveries.store import dead_letters
from draftsman.deliveries.target import parse
from draftsman.events import store as archives
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.store import promotion
from draftsman.questions.store import expiry
from draftsman.queues.store import postponed_work
from draftsman.worker.registry import store as workers
from draftsman.worker.store import dead_workers, sweeps
from tests.soak.calls.call import ALIVE, MIDDLE, Call, last_of
from tests.soak.history import WORKER, WORKER_IDS, WORKERS

HAND = LeaderTerm()
LEADER = LeaderTerm(WORKER, 1)
HANDS = "what is in workers' hands, of which there are 1,500"
CREWS = (
    "what is in workers' hands, once to find the lost and once to count them; and their suspects"
)
SUSPECTS = "the suspects, of which there are a thousand, for each kind of change"
BY_HAND = "doctor --invariants checks every row; run by hand, bounded by the statement timeout"
NEW = UUID(int=7)
RUNNING = Selection(range(last_of("running", WORKERS - 1), last_of("running") + 1))
"""A running job of each worker."""


def _rescue(
    dead: Sequence[UUID],
    lease: float,
    selection: Selection = ALL,
    rows: int = 2000,
    why: str = HANDS,
) -> Call:
    return Call(
        lambda conn: dead_workers.rescue(conn, LEADER, 200, selection, dead=dead, lease=lease),
        rows,
        why,
    )


async def _register(conn: Connection) -> object:
    return await workers.register(
        conn,
        id=NEW,
        host="h",
        host_id="h",
        pid=1,
        pid_started=1.0,
        version="1",
        types=["seed"],
        queues=["default"],
        slots=10,
    )


def _schema(query: str, **params: str) -> Call:
    """Run a query of a session or of a migration without changes."""
    text: LiteralString = load("schema")[query]
    return Call(lambda conn: conn.execute(text, params or None, prepare=query != "listen"))


def _invariant(query: LiteralString) -> Call:
    return Call(lambda conn: rows(conn, query), why=BY_HAND, everything=True)


Sweep = Callable[[Connection, LeaderTerm, int], Awaitable[int]]
Candidates = Callable[[Connection, LeaderTerm, int, Selection], Awaitable[list[int]]]


def _combined(query: str, work: Sweep, rows: int) -> dict[str, Call]:
    """Sweep manually, and as the leader."""
    return {
        f"{query}: by hand": Call(lambda conn: work(conn, HAND, 200), rows),
        f"{query}: as leader": Call(lambda conn: work(conn, LEADER, 200), rows),
    }


def _candidates(candidates: Candidates) -> Call:
    return Call(lambda conn: candidates(conn, LEADER, 200, ALL), 2000, HANDS)


CALLS: Final[dict[str, Call]] = {
    **_combined("expiry.expire", expiry.expire, 600),
    **_combined("expiry.escalate", expiry.escalate, 600),
    **_combined("promotion.promote", promotion.promote, 1200),
    "expiry.expire_candidates": _candidates(expiry.expire_candidates),
    "expiry.escalate_candidates": _candidates(expiry.escalate_candidates),
    "promotion.promote_candidates": _candidates(promotion.promote_candidates),
    "dead_letters.notify_candidates": _candidates(dead_letters.notify_candidates),
    "postponed_work.do_postponed_candidates": _candidates(postponed_work.do_postponed_candidates),
    "postponed_work.do_cancels_candidates": _candidates(postponed_work.do_cancels_candidates),
    "dead_workers.rescue_candidates": _candidates(
        partial(dead_workers.rescue_candidates, dead=[WORKER], lease=ALIVE)
    ),
    "dead_workers.deregister_candidates": Call(
        lambda conn: dead_workers.deregister_candidates(
            conn, LEADER, ALL, dead=[WORKER], after=86_400
        ),
        2000,
        HANDS,
    ),
    "dead_workers.suspects_candidates": Call(
        lambda conn: dead_workers.suspects_candidates(conn, ALL),
        2000,
        SUSPECTS,
        whole=("suspects",),
    ),
    "postponed_work.do_postponed": Call(lambda conn: postponed_work.do_postponed(conn, LEADER, 20)),
    "postponed_work.do_cancels": Call(lambda conn: postponed_work.do_cancels(conn, LEADER, 20)),
    "dead_letters.notify": Call(lambda conn: dead_letters.notify(conn, LEADER, 200, parse("log"))),
    "sweeps.next_due": Call(sweeps.next_due),
    "dead_workers.rescue: nobody died": _rescue([], ALIVE),
    "dead_workers.rescue: a dead worker": _rescue([WORKER], ALIVE, rows=3000, why=CREWS),
    "dead_workers.rescue: all workers died": _rescue(WORKER_IDS, ALIVE, RUNNING, 4500, CREWS),
    "dead_workers.rescue: all leases ended": _rescue([], 0),
    "dead_workers.suspects": Call(
        lambda conn: dead_workers.suspects(conn, LEADER), 9000, SUSPECTS, whole=("suspects",)
    ),
    "dead_workers.not_followed": Call(
        lambda conn: dead_workers.not_followed(conn, MIDDLE, "reason")
    ),
    "dead_workers.watch_locks": Call(dead_workers.watch_locks, 5 * WORKERS, "the workers"),
    "dead_workers.unlocked": Call(lambda conn: dead_workers.unlocked(conn, 15), WORKERS),
    "dead_workers.deregister": Call(
        lambda conn: dead_workers.deregister(conn, LEADER, dead=[WORKER], after=3600), 2000, HANDS
    ),
    "archives.partitions": Call(lambda conn: archives.partitions(conn, LEADER, 3)),
    "workers.register": Call(_register),
    "workers.hold": Call(lambda conn: workers.hold(conn, 1)),
    "workers.remove": Call(lambda conn: workers.remove(conn, NEW)),
    "workers.serving": Call(lambda conn: workers.serving(conn, 60), WORKERS),
    "workers.list": Call(workers.all_workers, 2000, HANDS),
    "workers.processes": Call(workers.processes, WORKERS),
    "workers.lock_number": Call(workers.lock_number),
    "workers.acquire": Call(lambda conn: workers.acquire(conn, "leader", NEW, 30, [WORKER])),
    "workers.renew": Call(lambda conn: workers.renew(conn, "leader", WORKER, 1, 30)),
    "workers.resign": Call(lambda conn: workers.resign(conn, "leader", WORKER, 1)),
    "schema.lock": _schema("lock"),
    "schema.applied": Call(schema.applied),
    "schema.applied_functions": Call(schema.applied_functions),
    "schema.record_functions": _schema(
        "record_functions", name="none", checksum="none", objects="{FUNCTION draftsman.now()}"
    ),
    "schema.lost_functions": _schema("lost_functions", names="{none}"),
    "schema.drop_vanished": _schema("drop_vanished", defined="{FUNCTION draftsman.now()}"),
    "schema.forget_functions": _schema("forget_functions", names="{none}"),
    "schema.record": _schema("record", name="none", checksum="none"),
    "schema.lock_timeout": _schema("lock_timeout", timeout="2000ms"),
    "schema.lock_holders": Call(schema.lock_holders),
    "schema.new_epoch": Call(schema.new_epoch),
    "schema.grant_roles": Call(schema.grant_roles, rows=1000, why="the objects of the schema"),
    "schema.enums": _schema("enums"),
    "schema.set_local": _schema("set_local", settings='{"jit": "off"}'),
    "schema.has_start_up_options": _schema("has_start_up_options"),
    "schema.foreign_settings": Call(
        schema.foreign_settings, rows=1000, why="the settings of roles, which have no index"
    ),
    "schema.listen": _schema("listen"),
    "schema.wake": _schema("wake"),
    **{f"invariants.{name}": _invariant(query) for name, query in load("invariants").items()},
}
