"""Kills during each step of pruning: the month or its archive always exists."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from draftsman.database.database import Connection
from draftsman.events.service import check_archive
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from draftsman.settings import Settings
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until, wait_blocked
from tests.acceptance import kill_at_call
from tests.acceptance.processes import Installation
from tests.support.clock import Clock
from tests.support.event_history import age_events, event_bytes, partition, with_retention
from tests.support.slow import slow_except
from tests.support.statements import run, value

STEPS = {
    "before anything is written": ("tempfile.mkstemp", ".part"),
    "when all is written, before it has its name": ("os.rename", ".part"),
    "when it has its name, before that is on the disk": ("open", "archive"),
    "before it is read back": ("open", ".gz"),
}
"""Points of the process: an audit event, and the end of its first argument."""
READS = "BEGIN; SELECT FROM draftsman.job_events"
"""Prevents other sessions from detaching a partition."""
WAITS = """
SELECT pg_advisory_lock(77);
CREATE FUNCTION draftsman.test_wait() RETURNS {kind} LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock_shared(77); {end} END'"""
IN_DROP = """; CREATE EVENT TRIGGER test_wait ON sql_drop EXECUTE FUNCTION draftsman.test_wait()"""
IN_COMMIT = """;
CREATE CONSTRAINT TRIGGER test_wait AFTER INSERT ON draftsman.event_archives
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION draftsman.test_wait()"""
BLOCKS = {
    "before it detaches the partition": READS,
    "when it dropped the partition, before it commits": WAITS.format(kind="event_trigger", end="")
    + IN_DROP,
    "when it said commit": WAITS.format(kind="trigger", end="RETURN NULL;") + IN_COMMIT,
}
"""Points in the database, with the statement that blocks the pruning session there."""


def pruning(installation: Installation) -> Path:
    """Configure an installation to prune; return the folder of its archives."""
    folder = installation.folder / "archive"
    installation.configure(None, retention__events=12, retention__archive_dir=str(folder))
    return folder


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    return with_retention(settings, tmp_path / "here" / "archive", events=12)


async def check_complete(
    rt: Runtime, make: Factory, conn: Connection, before: bytes, folder: Path
) -> None:
    """Check that no event is lost, and that pruning and restoring still work."""
    assert await partition(conn) is not None
    assert await event_bytes(conn) == before
    assert list(await rt.archives.all()) == []
    assert not any((await rt.read_model.invariants()).values())
    assert await rt.archives.prune(LeaderTerm()) == before.count(b"\n")
    (path,) = folder.glob("*.gz")
    assert check_archive(path).events == before.count(b"\n")
    await rt.archives.restore(path, make.owner)
    assert await event_bytes(conn) == before


@pytest.mark.parametrize("step", slow_except([*STEPS][1::2], STEPS))
async def test_kill_while_pruning_keeps_the_month_complete(
    rt: Runtime,
    make: Factory,
    clock: Clock,
    conn: Connection,
    installation: Installation,
    step: str,
) -> None:
    folder = pruning(installation)
    await age_events(make, clock)
    before = await event_bytes(conn)
    through = (sys.executable, "-m", kill_at_call.__name__, *STEPS[step])
    process = installation.start("sweep", "prune", through=through)
    assert await process.end() == -signal.SIGKILL, process.output_text
    assert len([*folder.glob("*.gz")]) == (step in list(STEPS)[2:])
    await check_complete(rt, make, conn, before, folder)


@pytest.mark.parametrize("step", slow_except([*BLOCKS][1:], BLOCKS))
async def test_kill_in_the_database_keeps_the_month_or_its_archive(
    rt: Runtime,
    make: Factory,
    clock: Clock,
    conn: Connection,
    installation: Installation,
    step: str,
) -> None:
    folder = pruning(installation)
    await age_events(make, clock)
    before = await event_bytes(conn)
    holder = await rt.db.dedicated_connection()
    await run(holder, BLOCKS[step])
    process = installation.start("sweep", "prune")
    await wait_blocked(conn, by=holder.info.backend_pid)
    process.signal(signal.SIGKILL)
    assert await process.end() == -signal.SIGKILL, process.output_text
    (path,) = folder.glob("*.gz")
    await holder.close()
    await until_alone(conn)
    if step == "when it said commit":
        assert await event_bytes(conn) == b""
        await rt.archives.restore(path, make.owner)
    await run(conn, "DROP EVENT TRIGGER IF EXISTS test_wait")
    await run(conn, "DROP FUNCTION IF EXISTS draftsman.test_wait() CASCADE")
    await check_complete(rt, make, conn, before, folder)


async def until_alone(conn: Connection) -> None:
    """Wait until the killed process's session has ended."""

    async def look() -> bool:
        return not await value(conn, "SELECT count(*) FROM pg_locks WHERE objid = 1146242646")

    await until(look, "the end of the session")
