"""The event feed: a follower with a cursor misses no event and sees none twice."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise

import pytest

from draftsman.database import migrate
from draftsman.database.database import Connection, Database
from draftsman.database.named_queries import load
from draftsman.events.event import Event
from draftsman.jobs.event_kinds import COMMON_KINDS
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import background, until
from tests.support.statements import CHECK, refused, rows, value

NOTE = "INSERT INTO draftsman.job_events (job, kind, actor) VALUES (%s, 'note', 'a')"
Cursor = tuple[int, int, int]


async def _follow(rt: Runtime, cursor: Cursor, page: int = 200) -> list[Event]:
    """Return all that follows a cursor now, page by page."""
    followed: list[Event] = []
    while events := await rt.read_model.events(cursor, page):
        followed += events
        cursor = events[-1].cursor
    return followed


async def _settled(rt: Runtime, conn: Connection) -> Cursor:
    """Return the end of the feed once all that is there lies before it.

    A transaction of another test, in another database of the server, holds the feed up too.
    """

    async def look() -> bool:
        newest = await value(conn, "SELECT max(txid)::text::bigint FROM draftsman.job_events")
        return (await rt.read_model.end_cursor())[1] > (newest or 0)

    await until(look, "the end of the feed after all events")
    return await rt.read_model.end_cursor()


async def test_an_event_that_commits_after_a_later_one_is_not_missed(
    rt: Runtime, db: Database, conn: Connection
) -> None:
    """The lower id commits last: a cursor at the higher id would have lost it."""
    start = await rt.read_model.end_cursor()
    async with db.connection() as slow, slow.transaction():
        await slow.execute(NOTE, (1,))
        await conn.execute(NOTE, (2,))
        assert await _follow(rt, start) == []
    await _settled(rt, conn)
    assert [event.job for event in await _follow(rt, start)] == [1, 2]


async def test_events_committed_before_an_open_transaction_are_visible(
    rt: Runtime, db: Database, conn: Connection
) -> None:
    start = await rt.read_model.end_cursor()
    await conn.execute(NOTE, (1,))
    await _settled(rt, conn)
    async with db.connection() as slow, slow.transaction():
        await slow.execute(NOTE, (2,))
        first = await _follow(rt, start)
        await conn.execute(NOTE, (3,))
        assert await _follow(rt, first[-1].cursor) == []
    await _settled(rt, conn)
    rest = await _follow(rt, first[-1].cursor)
    assert [event.job for event in first] == [1]
    assert [event.job for event in rest] == [2, 3]


async def test_a_rolled_back_transaction_leaves_no_event_and_blocks_none(
    rt: Runtime, db: Database, conn: Connection
) -> None:
    start = await rt.read_model.end_cursor()
    async with db.connection() as slow, slow.transaction(force_rollback=True):
        await slow.execute(NOTE, (1,))
        await conn.execute(NOTE, (2,))
    await _settled(rt, conn)
    assert [event.job for event in await _follow(rt, start)] == [2]


@pytest.mark.parametrize("page", [1, 2, 3])
async def test_pages_of_any_size_contain_every_event_once(
    make: Factory, rt: Runtime, conn: Connection, page: int
) -> None:
    await asyncio.gather(*(make.running() for _ in range(8)))
    await _settled(rt, conn)
    events = await _follow(rt, (0, 0, 0), page)
    assert len({(event.job, event.id) for event in events}) == len(events) == 24
    assert all(before.cursor < after.cursor for before, after in pairwise(events))


@pytest.mark.parametrize("page", [1, 2, 3])
async def test_pages_backwards_contain_every_event_once(
    make: Factory, rt: Runtime, conn: Connection, page: int
) -> None:
    await asyncio.gather(*(make.running() for _ in range(4)))
    end = await _settled(rt, conn)
    events: list[Event] = []
    while older := await rt.read_model.latest_events(events[-1].cursor if events else end, page):
        assert len(older) <= page
        events += older
    assert events[::-1] == await _follow(rt, (0, 0, 0))


async def test_the_planner_sees_through_the_function_of_the_view(conn: Connection) -> None:
    """A call for each row would cost more than the read of the row."""
    explain = "EXPLAIN (COSTS OFF) SELECT * FROM draftsman.events WHERE job = 1"
    plan = "\n".join([line for (line,) in await rows(conn, explain)])
    assert "_job_id_idx" in plan
    assert "Function Scan" not in plan


async def test_events_of_a_job_are_in_the_same_order_in_the_feed(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    numbers = await asyncio.gather(*(make.completed() for _ in range(5)))
    await _settled(rt, conn)
    events = await _follow(rt, (0, 0, 0))
    for number in numbers:
        job_events = [event for event in events if event.job == number]
        assert job_events == await rt.read_model.job_events(number)


async def test_the_end_cursor_skips_existing_events(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    await make.completed()
    start = await _settled(rt, conn)
    number = await make.queued()
    await _settled(rt, conn)
    assert [event.job for event in await _follow(rt, start)] == [number]


async def test_a_restored_database_continues_in_a_new_epoch(
    make: Factory, rt: Runtime, conn: Connection, database_url: str
) -> None:
    """Transaction ids start low in a restored database: an epoch puts its events behind the old."""
    await make.queued()
    await conn.execute(
        "INSERT INTO draftsman.job_events (job, kind, actor, txid)"
        " VALUES (1, 'before the dump', 'a', '900000000000')"
    )
    await until(lambda: _are(rt, 1), "one event")
    assert await migrate.start_epoch(database_url) == 2
    assert await migrate.start_epoch(database_url) == 3
    await conn.execute(NOTE, (1,))
    await until(lambda: _are(rt, 3), "three events")
    kinds = [(event.epoch, event.kind) for event in await _follow(rt, (0, 0, 0))]
    assert kinds == [(1, "job_created"), (1, "before the dump"), (3, "note")]
    assert (await rt.read_model.end_cursor())[0] == 3


async def _are(rt: Runtime, events: int) -> bool:
    return len(await _follow(rt, (0, 0, 0))) == events


@pytest.mark.parametrize("size", [1, 2, 3])
async def test_events_of_a_job_are_paged_by_id(make: Factory, rt: Runtime, size: int) -> None:
    number = await make.completed()
    whole = await rt.read_model.job_events(number)
    paged: list[Event] = []
    while page := await rt.read_model.job_events(number, paged[-1].id if paged else 0, size):
        assert len(page) <= size
        paged += page
    assert paged == whole
    for length in range(1, len(whole) + 1):
        assert await rt.read_model.latest_job_events(number, 0, length) == whole[-length:]
    after = [await rt.read_model.latest_job_events(number, event.id, 9) for event in whole]
    assert after == [whole[place:] for place in range(1, len(whole) + 1)]


async def test_following_a_job_yields_its_events_and_ends_with_it(
    make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    events = []
    async for event in rt.read_model.follow(work.number):
        events.append(event.kind)
        if event.kind == "job_started":
            await rt.settlement.release_run(work, "shutdown")
            await rt.job_control.cancel(work.number, make.owner)
    assert events == ["job_created", "job_claimed", "job_started", "job_released", "job_canceled"]


async def test_following_without_a_cursor_yields_new_events(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    before = await make.completed()
    await _settled(rt, conn)
    async with background(anext(rt.read_model.follow(None, new=True))) as following:
        while not following.done():  # the follower must have read first where the feed ends
            await make.queued()
            await asyncio.wait([following], timeout=0.05)
    assert following.result().job > before


async def test_the_index_of_kinds_has_no_entry_of_an_ordinary_job(
    make: Factory, rt: Runtime
) -> None:
    events = await rt.read_model.job_events(await make.completed())
    assert {event.kind for event in events} == COMMON_KINDS


async def test_the_kinds_that_are_not_indexed_are_those_of_the_search(conn: Connection) -> None:
    text = "SELECT pg_get_indexdef('draftsman.job_events_kind'::regclass)"
    assert set(re.findall(r"'(\w+)'::text", await value(conn, text))) == COMMON_KINDS
    query = load("draftsman.jobs.details.store")["events_of_kinds"]
    assert set(re.findall(r"'(job_\w+)'", query)) == COMMON_KINDS


async def test_the_event_feed_has_one_epoch(conn: Connection) -> None:
    async with refused(CHECK, '"event_epoch_single_check"'):
        await conn.execute("INSERT INTO draftsman.event_epoch (single, epoch) VALUES (false, 2)")
