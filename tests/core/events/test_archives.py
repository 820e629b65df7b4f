"""A month of events is archived in a verified file, restored unchanged, or kept complete."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from datetime import date
from pathlib import Path
from uuid import uuid4

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Conflict, LostRace, NotPermitted, Refused
from draftsman.events import store
from draftsman.events.service import ArchiveContent, ArchiveWriter, check_archive
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from draftsman.settings import Settings
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from draftsman_testing.waits import DEADLINE, until
from tests.support.clock import Clock
from tests.support.event_history import (
    age_events,
    event_bytes,
    over_a_year,
    partition,
    this_month,
    with_retention,
)
from tests.support.races import hold_commits
from tests.support.statements import CHANGE, refused, rows, run, value

pytestmark = pytest.mark.machine_clock("events have the time of the server")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "archive"


@pytest.fixture
def settings(settings: Settings, folder: Path) -> Settings:
    return with_retention(settings, folder, events=12)


async def has_no_violations(rt: Runtime) -> bool:
    return not any((await rt.read_model.invariants()).values())


async def pruned(rt: Runtime, make: Factory, clock: Clock) -> Path:
    """Prune this month; return its archive."""
    await age_events(make, clock)
    assert await rt.archives.prune(LeaderTerm()) > 0
    (archive,) = await rt.archives.all()
    return Path(archive.path)


async def test_a_pruned_month_is_restored_byte_by_byte(
    rt: Runtime, make: Factory, clock: Clock, conn: Connection, folder: Path
) -> None:
    jobs = await age_events(make, clock)
    before = await event_bytes(conn)

    async def all_in_feed() -> (
        bool
    ):  # waits for all transactions that began before, anywhere on the server
        return len(await rt.read_model.events()) == before.count(b"\n")

    await until(all_in_feed, "all events in the feed")
    feed = await rt.read_model.events()
    assert await rt.archives.prune(LeaderTerm()) == before.count(b"\n") == len(feed)
    assert await event_bytes(conn) == b""
    assert await partition(conn) is None
    assert await has_no_violations(rt)
    (archive,) = await rt.archives.all()
    assert (archive.events, [Path(archive.path)]) == (len(feed), list(folder.iterdir()))
    assert gzip.decompress(Path(archive.path).read_bytes()).count(before) == 1
    assert (archive.last_epoch, archive.last_txid, archive.last_id) == feed[-1].cursor
    parts = [part for job in jobs for part in await rt.archives.of_job(job)]
    assert sum(part.events for part in parts) == len(feed)
    assert await rt.archives.prune(LeaderTerm()) == 0

    await rt.archives.restore(Path(archive.path), make.owner)
    assert await event_bytes(conn) == before
    assert await rt.read_model.events() == feed
    assert await rt.read_model.events(feed[3].cursor) == feed[4:]
    assert [*await rt.archives.all(), *await rt.archives.of_job(jobs[0])] == []
    assert await has_no_violations(rt)
    async with refused(CHANGE, "append-only"):
        await run(conn, f"TRUNCATE {await partition(conn)}")
    async with refused(CHANGE, "append-only"):
        await conn.execute("DELETE FROM draftsman.job_events")


async def test_a_restored_month_is_pruned_again_into_the_same_file(
    rt: Runtime, make: Factory, clock: Clock, folder: Path
) -> None:
    path = await pruned(rt, make, clock)
    before = path.read_bytes()
    await rt.archives.restore(path, make.owner)
    assert await rt.archives.prune(LeaderTerm()) > 0
    assert [(file, file.read_bytes()) for file in folder.iterdir()] == [(path, before)]


def test_two_databases_can_share_an_archive_folder(folder: Path) -> None:
    paths = []
    for line in (b"1\tone\n", b"1\tother\n"):
        writer = ArchiveWriter(folder, date(2026, 1, 1))
        writer.write(line)
        paths.append(writer.finish()[0])
    assert [check_archive(path).events for path in paths] == [1, 1]
    assert len(set(paths)) == len([*folder.iterdir()]) == 2


@pytest.mark.parametrize("status", [Status.WAITING_FOR_INPUT, Status.QUEUED, Status.SCHEDULED])
async def test_a_live_job_blocks_the_pruning_of_its_month_and_is_named(
    rt: Runtime, make: Factory, clock: Clock, conn: Connection, folder: Path, status: Status
) -> None:
    held = await make.job_in(status)
    await age_events(make, clock)
    before = await event_bytes(conn)
    assert await rt.archives.prune(LeaderTerm()) == 0
    assert await event_bytes(conn) == before
    assert not folder.exists()
    (month,) = await rt.archives.plan()
    assert month.state == f"held by D-{held} ({status})"


async def test_only_the_first_jobs_that_block_a_month_are_named(
    rt: Runtime, make: Factory, clock: Clock
) -> None:
    held = [await make.queued() for _ in range(7)]
    await clock.forward(over_a_year())
    names = ", ".join(f"D-{number} (queued)" for number in held[:5])
    assert [month.state for month in await rt.archives.plan()] == [f"held by {names} and 2 more"]


async def test_a_job_that_finished_recently_blocks_the_month_of_its_start(
    rt: Runtime, make: Factory, clock: Clock
) -> None:
    work = await make.running()
    await clock.forward(over_a_year())
    assert await rt.settlement.outcome(work, Done({})) is Status.COMPLETED
    (month,) = await rt.archives.plan()
    assert month.state == f"held by D-{work.number} (completed)"
    assert await rt.archives.prune(LeaderTerm()) == 0


async def test_a_month_that_is_too_young_and_a_retention_of_never_prune_nothing(
    rt: Runtime, make: Factory, clock: Clock
) -> None:
    await make.completed()
    await clock.forward(330 * 86_400)
    assert (await rt.archives.prune(LeaderTerm()), await rt.archives.plan()) == (0, [])


async def test_events_in_the_default_partition_are_reported_and_not_pruned(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    number = await make.completed()
    await conn.execute(
        "INSERT INTO draftsman.job_events (job, kind, actor, created_at)"
        " VALUES (%s, 'k', 'a', '2001-01-31 23:59Z')",
        (number,),
    )
    (month,) = await rt.archives.plan()
    assert (f"{month.month:%Y-%m}", month.events) == ("2001-01", 1)
    assert month.state == "never: its events are in the default partition"
    assert await rt.archives.prune(LeaderTerm()) == 0


async def test_concurrent_leaders_prune_once(
    rt: Runtime, make: Factory, clock: Clock, folder: Path, conn: Connection
) -> None:
    await age_events(make, clock)
    before = await event_bytes(conn)
    async with (
        hold_commits(rt) as first,
        first.doing(first.rt.archives.prune(LeaderTerm())) as done,
    ):
        with pytest.raises(LostRace, match="is pruning or restoring"):
            await rt.archives.prune(LeaderTerm())
    path = next(folder.iterdir())
    await rt.archives.restore(path, make.owner)
    many = (rt.archives.prune(LeaderTerm()) for _ in range(6))
    ends = await asyncio.gather(*many, return_exceptions=True)
    assert done.result() == sum(end for end in ends if isinstance(end, int)) == before.count(b"\n")
    assert {type(end) for end in ends} <= {int, LostRace}
    assert len(list(folder.iterdir())) == 1
    assert await has_no_violations(rt)


async def test_a_leader_without_its_lease_prunes_nothing(
    rt: Runtime, make: Factory, clock: Clock, conn: Connection
) -> None:
    await age_events(make, clock)
    term = LeaderTerm(uuid4(), 1)
    assert await rt.archives.prune(term) == 0
    (month,) = await rt.archives.plan()
    named = {"sha256": "", "host": "", "path": ""}
    async with rt.db.transaction() as session:  # it ends while the month is archived
        assert await store.drop(session, term, month.month, **named) is None
    assert await partition(conn) is not None


async def test_a_month_that_is_being_read_is_pruned_later(
    rt: Runtime, make: Factory, clock: Clock, conn: Connection
) -> None:
    await age_events(make, clock)
    async with conn.transaction():
        before = await event_bytes(conn)
        with pytest.raises(LostRace, match="a needed lock is held by another session"):
            async with asyncio.timeout(DEADLINE):  # later lock requests queue behind it
                await rt.archives.prune(LeaderTerm())
    assert await event_bytes(conn) == before
    assert await rt.archives.prune(LeaderTerm()) == before.count(b"\n")


async def test_a_corrupt_archive_prevents_the_pruning(
    rt: Runtime, make: Factory, clock: Clock, conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await age_events(make, clock)
    before = await event_bytes(conn)
    finish = ArchiveWriter.finish

    def corrupt(writer: ArchiveWriter) -> tuple[Path, ArchiveContent]:
        path, content = finish(writer)
        path.write_bytes(path.read_bytes()[:-20])
        return path, content

    monkeypatch.setattr(ArchiveWriter, "finish", corrupt)
    with pytest.raises(Refused, match="is not a valid event archive"):
        await rt.archives.prune(LeaderTerm())
    assert await event_bytes(conn) == before
    assert list(await rt.archives.all()) == []


async def test_an_unwritable_archive_folder_is_named(
    rt: Runtime, make: Factory, clock: Clock, conn: Connection, folder: Path
) -> None:
    folder.parent.write_text("a file")
    await age_events(make, clock)
    with pytest.raises(Refused, match=f"cannot write the archive: {folder.parent}"):
        await rt.archives.prune(LeaderTerm())
    assert await partition(conn) is not None


def _flipped(data: bytes) -> bytes:
    lines = gzip.decompress(data).replace(b"job_completed", b"job_canceled\0", 1)
    return gzip.compress(lines)


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "a byte of the file": lambda data: data[:300] + bytes([data[300] ^ 1]) + data[301:],
    "a byte of an event": _flipped,
    "its end": lambda data: data[:-30],
    "its last line": lambda data: gzip.compress(gzip.decompress(data).rsplit(b"\\.")[0]),
    "all": lambda data: b"",
    "its kind": lambda data: gzip.compress(b'{"kind": "other", "v": 9}\n'),
    "its head": lambda data: gzip.compress(b"[1]\n"),
    "more": lambda data: gzip.compress(gzip.decompress(data) + b"1\t2\n"),
    "not gzip": lambda data: b"job\tid\n" * 90,
}


async def test_a_corrupt_archive_is_refused_in_one_line(
    rt: Runtime, make: Factory, clock: Clock, conn: Connection
) -> None:
    path = await pruned(rt, make, clock)
    archive = path.read_bytes()
    for how, spoil in SPOILT.items():
        path.write_bytes(spoil(archive))
        with pytest.raises(Refused, match="is not a valid event archive: ") as caught:
            await rt.archives.restore(path, make.owner)
        assert "\n" not in str(caught.value), how
        assert await event_bytes(conn) == b"", how
    assert len(await rt.archives.all()) == 1


async def test_only_a_pruned_month_is_restored_and_only_once(
    rt: Runtime, make: Factory, clock: Clock, conn: Connection, people: People, tmp_path: Path
) -> None:
    path = await pruned(rt, make, clock)
    month = await this_month(conn)
    with pytest.raises(NotPermitted, match="may not restore"):
        await rt.archives.restore(path, people.anna)
    await conn.execute("UPDATE draftsman.event_archives SET sha256 = 'other'")
    with pytest.raises(Refused, match=f"the archive of {month} does not have the checksum"):
        await rt.archives.restore(path, make.owner)
    content = await rt.archives.check(path)
    await conn.execute("UPDATE draftsman.event_archives SET sha256 = %s", (content.sha256,))
    await rt.archives.restore(path, make.owner)
    with pytest.raises(Refused, match=f"{month} was not pruned from this database"):
        await rt.archives.restore(path, make.owner)
    with pytest.raises(Refused, match=r"cannot read .*: No such file"):
        await rt.archives.restore(tmp_path / "none", make.owner)


async def test_a_month_with_newer_events_is_not_restored(
    rt: Runtime, make: Factory, clock: Clock
) -> None:
    path = await pruned(rt, make, clock)
    await make.queued()  # the clock of events did not move
    with pytest.raises(Conflict, match="has new events since it was pruned"):
        await rt.archives.restore(path, make.owner)


async def test_concurrent_restores_restore_once(
    rt: Runtime, make: Factory, clock: Clock, conn: Connection
) -> None:
    path = await pruned(rt, make, clock)
    ends = await asyncio.gather(
        *(rt.archives.restore(path, make.owner) for _ in range(4)), return_exceptions=True
    )
    assert [type(end) for end in ends if isinstance(end, Exception)].count(LostRace) <= 3
    assert sum(not isinstance(end, BaseException) for end in ends) <= 1
    if await rt.archives.all():
        await rt.archives.restore(path, make.owner)
    assert await value(conn, "SELECT count(*) = count(DISTINCT id) FROM draftsman.job_events")
    assert await has_no_violations(rt)


async def test_a_cursor_in_a_pruned_month_is_recognized(
    rt: Runtime, make: Factory, clock: Clock
) -> None:
    await pruned(rt, make, clock)
    (archive,) = await rt.archives.all()
    last = (archive.last_epoch or 0, archive.last_txid or 0, archive.last_id or 0)
    assert list(await rt.archives.after((0, 0, 0))) == [archive]
    assert list(await rt.archives.after((last[0], last[1], last[2] - 1))) == [archive]
    assert list(await rt.archives.after(last)) == []


async def test_partitions_after_a_restore_are_those_before_the_pruning(
    rt: Runtime, make: Factory, clock: Clock, conn: Connection
) -> None:
    months = "SELECT month FROM draftsman.event_months ORDER BY month"
    before = await rows(conn, months)
    path = await pruned(rt, make, clock)
    assert await rows(conn, months) == before[1:]
    await rt.archives.restore(path, make.owner)
    assert await rows(conn, months) == before
