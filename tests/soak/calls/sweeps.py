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
from draftsman.deliveries.store import deliveries
from draftsman.deliveries.target import parse
from draftsman.events import store as archives
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.store import jobs
from draftsman.questions.store import questions
from draftsman.queues import store as queues
from draftsman.worker import store as worker
from draftsman.worker.registry import store as workers
from tests.soak.calls.call import ALIVE, FEW, MIDDLE, Call, last_of
from tests.soak.history import WORKER, WORKER_IDS, WORKERS
from tests.support.declared_sweeps import DUE_QUERIES

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
        lambda conn: worker.rescue(conn, LEADER, 200, selection, dead=dead, lease=lease),
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


def _schema(query: str, rows: int = FEW, why: str = "", **params: str) -> Call:
    """Run a query of a session or of a migration without changes."""
    text: LiteralString = load("draftsman.database.schema")[query]
    return Call(
        lambda conn: conn.execute(text, params or None, prepare=query != "listen"), rows, why
    )


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
    **_combined("questions.expire", questions.expire, 600),
    **_combined("questions.escalate", questions.escalate, 600),
    **_combined("jobs.promote", jobs.promote, 1200),
    "questions.expire_candidates": _candidates(questions.expire_candidates),
    "questions.escalate_candidates": _candidates(questions.escalate_candidates),
    "jobs.promote_candidates": _candidates(jobs.promote_candidates),
    "deliveries.notify_dead_letters_candidates": _candidates(
        deliveries.notify_dead_letters_candidates
    ),
    "queues.do_postponed_candidates": _candidates(queues.do_postponed_candidates),
    "queues.do_cancels_candidates": _candidates(queues.do_cancels_candidates),
    "worker.rescue_candidates": _candidates(
        partial(worker.rescue_candidates, dead=[WORKER], lease=ALIVE)
    ),
    "worker.deregister_candidates": Call(
        lambda conn: worker.deregister_candidates(conn, LEADER, ALL, dead=[WORKER], after=86_400),
        2000,
        HANDS,
    ),
    "worker.suspects_candidates": Call(
        lambda conn: worker.suspects_candidates(conn, ALL),
        2000,
        SUSPECTS,
        whole=("suspects",),
    ),
    "queues.do_postponed": Call(lambda conn: queues.do_postponed(conn, LEADER, 20)),
    "queues.do_cancels": Call(lambda conn: queues.do_cancels(conn, LEADER, 20)),
    "deliveries.notify_dead_letters": Call(
        lambda conn: deliveries.notify_dead_letters(conn, LEADER, 200, parse("log"))
    ),
    "worker.next_due": Call(lambda conn: worker.next_due(conn, DUE_QUERIES)),
    "worker.rescue: nobody died": _rescue([], ALIVE),
    "worker.rescue: a dead worker": _rescue([WORKER], ALIVE, rows=3000, why=CREWS),
    "worker.rescue: all workers died": _rescue(WORKER_IDS, ALIVE, RUNNING, 4500, CREWS),
    "worker.rescue: all leases ended": _rescue([], 0, rows=4500, why=CREWS),
    "worker.lost_runs": Call(lambda conn: worker.lost_runs(conn, [last_of("running")])),
    "worker.suspects": Call(
        lambda conn: worker.suspects(conn, LEADER), 9000, SUSPECTS, whole=("suspects",)
    ),
    "worker.not_followed": Call(lambda conn: worker.not_followed(conn, MIDDLE, "reason")),
    "worker.watch_locks": Call(worker.watch_locks, 5 * WORKERS, "the workers"),
    "worker.unlocked": Call(lambda conn: worker.unlocked(conn, 15), WORKERS),
    "worker.deregister": Call(
        lambda conn: worker.deregister(conn, LEADER, dead=[WORKER], after=3600), 2000, HANDS
    ),
    "events.partitions": Call(lambda conn: archives.partitions(conn, LEADER, 3)),
    "registry.register": Call(_register),
    "registry.hold": Call(lambda conn: workers.hold(conn, 1)),
    "registry.remove": Call(lambda conn: workers.remove(conn, NEW)),
    "registry.serving": Call(lambda conn: workers.serving(conn, 60), WORKERS),
    "registry.list": Call(partial(workers.all_workers, lease=300), 2000, HANDS),
    "registry.processes": Call(workers.processes, WORKERS),
    "registry.lock_number": Call(workers.lock_number),
    "registry.acquire": Call(lambda conn: workers.acquire(conn, "leader", NEW, 30, [WORKER])),
    "registry.renew": Call(lambda conn: workers.renew(conn, "leader", WORKER, 1, 30)),
    "registry.resign": Call(lambda conn: workers.resign(conn, "leader", WORKER, 1)),
    "schema.lock": _schema("lock"),
    "schema.applied": Call(schema.applied),
    "schema.applied_functions": Call(schema.applied_functions),
    "schema.record_functions": _schema(
        "record_functions", name="none", checksum="none", objects="{FUNCTION draftsman.now()}"
    ),
    "schema.lost_functions": _schema("lost_functions", names="{none}"),
    "schema.drop_vanished": _schema(
        "drop_vanished",
        3000,
        "all that files define",
        defined="{FUNCTION draftsman.now()}",
        channels="{none}",
    ),
    "schema.forget_functions": _schema("forget_functions", names="{none}", channels="{none}"),
    "schema.packages": Call(schema.packages),
    "schema.record_versions": Call(lambda conn: schema.record_versions(conn, [])),
    "schema.record": _schema("record", name="none", checksum="none"),
    "schema.lock_timeout": _schema("lock_timeout", timeout="2000ms"),
    "schema.lock_holders": Call(schema.lock_holders),
    "schema.new_epoch": Call(schema.new_epoch),
    "schema.grant_roles": Call(schema.grant_roles, rows=1000, why="the objects of the schema"),
    "schema.enums": _schema("enums"),
    "schema.set_local": _schema("set_local", settings='{"jit": "off"}'),
    "schema.has_start_up_options": _schema("has_start_up_options"),
    "schema.oldest_snapshot": Call(schema.oldest_snapshot),
    "schema.foreign_settings": Call(
        schema.foreign_settings, rows=1000, why="the settings of roles, which have no index"
    ),
    "schema.listen": _schema("listen"),
    "schema.wake": _schema("wake"),
    **{
        f"invariants.{name}": _invariant(query)
        for name, query in load("draftsman.jobs.details.invariants").items()
    },
}
