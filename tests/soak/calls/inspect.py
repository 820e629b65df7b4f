"""What people look at, but for lists of jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

from draftsman.domain.ids import parse_job
from draftsman.store import inspect
from draftsman.store.db import Connection
from tests.soak.calls.call import ENDS, MIDDLE, MISSING, Call, last_of
from tests.soak.history import ALL, FINISHED, WAITING

LEASE = 300.0
NEVER = 2**62
COUNTED = "what is open is counted exactly"


def _find(digits: int) -> Call:
    """Look for a job by so many characters of its id."""

    async def work(conn: Connection) -> object:
        job = await inspect.get(conn, MIDDLE)
        assert job is not None
        ref = parse_job(str(job.id)[:digits])
        return await inspect.find(conn, ref.lowest, ref.highest)

    return Call(work)


def _each(query: str, work: Callable[[Connection, int], Awaitable[object]]) -> dict[str, Call]:
    """Call it for jobs of every age."""

    def one(number: int) -> Call:
        return Call(lambda conn: work(conn, number))

    return {f"inspect.{query}: {name}": one(number) for name, number in ENDS.items()}


def _why(number: int, rows: int = 300, why: str = "") -> Call:
    return Call(lambda conn: inspect.why(conn, number, LEASE), rows, why)


def _feed(epoch: int, txid: int, id: int = 0) -> Call:
    return Call(lambda conn: inspect.feed(conn, (epoch, txid, id), 200), 2000, "200 of a partition")


def _latest(before: tuple[int, int, int]) -> Call:
    return Call(lambda conn: inspect.latest(conn, before, 200), 2000, "200 of a partition")


def _pulse(after: tuple[int, int, int], before: tuple[int, int, int]) -> Call:
    return Call(lambda conn: inspect.pulse(conn, after, before, 10, 1000), 2000, "1,000 events")


async def _feed_of_nothing(conn: Connection) -> object:
    return await inspect.feed(conn, await inspect.feed_end(conn), 200)


CALLS: Final[dict[str, Call]] = {
    **_each("get", inspect.get),
    **_each("status", inspect.status),
    **_each("stand", inspect.stand),
    **_each("chain", inspect.chain),
    **_each("runs", inspect.runs),
    **_each("trail_end", lambda conn, number: inspect.trail_end(conn, number, 0, 200)),
    **_each("trail", lambda conn, number: inspect.trail(conn, number, 0, 200)),
    "inspect.find: whole": _find(36),
    "inspect.find: a prefix": _find(15),
    "inspect.find: of everything": _find(4),
    "inspect.find: nothing": Call(lambda conn: inspect.find(conn, UUID(int=1), UUID(int=2))),
    "inspect.in_order": _feed(1, MIDDLE),
    "inspect.feed: from the beginning": _feed(0, 0),
    "inspect.feed: in the middle": _feed(1, MIDDLE),
    "inspect.feed: in this epoch": _feed(2, 0),
    "inspect.feed: inside a large transaction": _feed(1, MIDDLE, MIDDLE * 10 + 2),
    "inspect.feed: nothing new": Call(_feed_of_nothing),
    "inspect.latest: the newest": _latest((NEVER, 0, 0)),
    "inspect.latest: in the middle": _latest((1, MIDDLE, 0)),
    "inspect.latest_runs: the newest": Call(
        lambda conn: inspect.latest_runs(conn, (NEVER, 0), 200)
    ),
    "inspect.latest_runs: in the middle": Call(
        lambda conn: inspect.latest_runs(conn, (MIDDLE, 1), 200)
    ),
    "inspect.feed_end": Call(inspect.feed_end),
    "inspect.pulse: the newest": _pulse((0, 0, 0), (NEVER, 0, 0)),
    "inspect.pulse: in the middle": _pulse((1, MIDDLE // 2, 0), (1, MIDDLE, 0)),
    "inspect.pulse: nothing new": _pulse((2, NEVER, 0), (NEVER, 0, 0)),
    "inspect.why: queued": _why(last_of("queued"), 1500, "it counts to a thousand"),
    "inspect.why: waiting": _why(last_of("waiting_for_input"), 1500, "it counts to a thousand"),
    "inspect.why: completed": _why(MIDDLE, 1500, "it counts to a thousand"),
    "inspect.why: missing": _why(MISSING),
    "inspect.counts": Call(
        lambda conn: inspect.counts(conn, 10_000), ALL - FINISHED + 50_000, COUNTED
    ),
    "inspect.open_counts": Call(inspect.open_counts, WAITING, COUNTED),
    "inspect.answer_times": Call(inspect.answer_times, 10_000, "the last 10,000 answers"),
    "inspect.health": Call(inspect.health),
}
