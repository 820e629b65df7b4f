"""Queries of the front ends, except lists of jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from draftsman.database.database import Connection
from draftsman.ids import parse_job
from draftsman.jobs.details import store as read_model
from draftsman.jobs.details.throughput import Period
from tests.soak.calls.call import ALIVE, ENDS, MIDDLE, MISSING, OLDEST, Call, last_of
from tests.soak.history import ALL

NEVER = 2**62


def _find(digits: int) -> Call:
    """Find a job by the first characters of its id."""

    async def work(conn: Connection) -> object:
        job = await read_model.get(conn, MIDDLE)
        assert job is not None
        ref = parse_job(str(job.id)[:digits])
        return await read_model.find(conn, ref.lowest, ref.highest)

    return Call(work)


def _each(query: str, work: Callable[[Connection, int], Awaitable[object]]) -> dict[str, Call]:
    """Call it for jobs of every age."""

    def one(number: int) -> Call:
        return Call(lambda conn: work(conn, number))

    return {f"details.{query}: {name}": one(number) for name, number in ENDS.items()}


def _why(number: int, rows: int = 300, why: str = "") -> Call:
    return Call(lambda conn: read_model.why(conn, number, ALIVE), rows, why)


def _details(number: int) -> Call:
    return Call(
        lambda conn: read_model.details(conn, number, ALIVE), 1500, "it counts to a thousand"
    )


def _feed(epoch: int, txid: int, id: int = 0) -> Call:
    return Call(
        lambda conn: read_model.events(conn, (epoch, txid, id), 200), 2000, "200 of a partition"
    )


def _kinds(txid: int, *kinds: str) -> Call:
    return Call(
        lambda conn: read_model.events_of_kinds(conn, kinds, (1, txid, 0), 200),
        2000,
        "200 of a kind and a partition",
    )


def _before(since: datetime) -> Call:
    return Call(lambda conn: read_model.txid_before(conn, since), 2000, "a row of each step")


def _latest(before: tuple[int, int, int]) -> Call:
    return Call(
        lambda conn: read_model.latest_events(conn, before, 200), 2000, "200 of a partition"
    )


def _pulse(after: tuple[int, int, int], before: tuple[int, int, int]) -> Call:
    return Call(
        lambda conn: read_model.activity(conn, after, before, 10, 1000), 2000, "1,000 events"
    )


async def _feed_of_nothing(conn: Connection) -> object:
    return await read_model.events(conn, await read_model.end_cursor(conn), 200)


def _throughput(period: Period) -> Call:
    return Call(
        lambda conn: read_model.throughput(conn, period, (0, 0, 0), 1000, 20),
        3000,
        "1,000 events, and three rows of each job that ended",
    )


CALLS: Final[dict[str, Call]] = {
    **_each("get", read_model.get),
    **_each("version", read_model.version),
    **_each("chain", read_model.chain),
    **_each(
        "latest_job_events", lambda conn, number: read_model.latest_job_events(conn, number, 0, 200)
    ),
    **_each("job_events", lambda conn, number: read_model.job_events(conn, number, 0, 200)),
    "details.find: whole": _find(36),
    "details.find: a prefix": _find(15),
    "details.find: of everything": _find(4),
    "details.find: nothing": Call(lambda conn: read_model.find(conn, UUID(int=1), UUID(int=2))),
    "details.in_order": _feed(1, MIDDLE),
    "details.events: from the beginning": _feed(0, 0),
    "details.events: in the middle": _feed(1, MIDDLE),
    "details.events: in this epoch": _feed(2, 0),
    "details.events: inside a large transaction": _feed(1, MIDDLE, MIDDLE * 10 + 2),
    "details.events: nothing new": Call(_feed_of_nothing),
    "details.events_of_kinds: from the beginning": _kinds(0, "job_failed", "needs_input"),
    "details.events_of_kinds: in the middle": _kinds(MIDDLE, "job_expired"),
    "details.events_of_kinds: none": _kinds(0, "no_such_kind"),
    "details.txid_before: now": _before(datetime.now(UTC)),
    "details.txid_before: long ago": _before(datetime(2001, 1, 1, tzinfo=UTC)),
    "details.latest_events: the newest": _latest((NEVER, 0, 0)),
    "details.latest_events: in the middle": _latest((1, MIDDLE, 0)),
    "details.latest_runs: the newest": Call(
        lambda conn: read_model.latest_runs(conn, (NEVER, 0), 200)
    ),
    "details.latest_runs: in the middle": Call(
        lambda conn: read_model.latest_runs(conn, (MIDDLE, 1), 200)
    ),
    "details.end_cursor": Call(read_model.end_cursor),
    "details.activity: the newest": _pulse((0, 0, 0), (NEVER, 0, 0)),
    "details.activity: in the middle": _pulse((1, MIDDLE // 2, 0), (1, MIDDLE, 0)),
    "details.activity: nothing new": _pulse((2, NEVER, 0), (NEVER, 0, 0)),
    "details.throughput: the last hour": _throughput(Period.HOUR),
    "details.throughput: the last week": _throughput(Period.WEEK),
    "details.ended": Call(lambda conn: read_model.ended(conn, [OLDEST, MIDDLE, ALL])),
    "details.why: queued": _why(last_of("queued"), 1500, "it counts to a thousand"),
    "details.why: waiting": _why(last_of("waiting_for_input"), 1500, "it counts to a thousand"),
    "details.why: a suspect": _why(last_of("retrying", 1), 1500, "it counts to a thousand"),
    "details.why: completed": _why(MIDDLE, 1500, "it counts to a thousand"),
    "details.why: missing": _why(MISSING),
    **{f"details.details: {name}": _details(number) for name, number in ENDS.items()},
    **_each(
        "job_events_of_kinds",
        lambda conn, number: read_model.job_events_of_kinds(conn, number, ("sandbox_applied",)),
    ),
    "details.failure_counts": Call(
        lambda conn: read_model.failure_counts(conn, 10_000), 10_000, "10,000 are counted"
    ),
    "details.pauses": Call(read_model.pauses),
    "details.answer_times": Call(read_model.answer_times, 10_000, "the last 10,000 answers"),
    "details.sources": Call(read_model.sources),
    "details.newest_values: repo": Call(
        lambda conn: read_model.newest_values(conn, "repo", ALL - 1000), 2000, "the newest jobs"
    ),
    "details.newest_values: tag": Call(
        lambda conn: read_model.newest_values(conn, "tag", ALL - 1000), 2000, "the newest jobs"
    ),
    "details.health": Call(read_model.health),
}
