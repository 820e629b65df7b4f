"""Workers of a release and of the current version on a database that is migrated meanwhile."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing import waits
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.acceptance.processes import DEADLINE, Installation
from tests.core.worker import workers
from tests.core.worker.workers import wait_for_end
from tests.support.statements import rows, value
from tests.upgrade.processes import SUBMITTER, WIDE_MIGRATION, WORKER, Upgrade
from tests.upgrade.releases import Release, checksums

LONG = 300.0
"""Seconds after which it hangs: a busy machine takes minutes for it."""


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (waits, workers):
        monkeypatch.setattr(module, "DEADLINE", DEADLINE)


@pytest.fixture
def processes() -> int:
    """Provide the number of concurrent migrations; `make soak` has ten."""
    return 2


@pytest.fixture
def upgrade(release: Release, database_url: str, tmp_path: Path) -> Iterator[Upgrade]:
    installation = Installation(tmp_path / "here", database_url)
    yield Upgrade(installation, release)
    installation.close()


async def more(upgrade: Upgrade, *, old: bool) -> None:
    """Wait until that version has run another job."""

    async def look() -> bool:
        return sum(was_old is old for _, was_old in upgrade.ran()) > start

    start = sum(was_old is old for _, was_old in upgrade.ran())
    await until(look, f"another job, by the {'release' if old else 'new version'}")


@pytest.mark.timeout(LONG)
@pytest.mark.slow(
    fast="tests/core/database/test_migrate_locks.py::test_a_version_works_on_a_newer_and_not_on_an_older_schema"
)
async def test_no_job_is_lost_or_run_twice_while_processes_migrate(
    upgrade: Upgrade,
    release: Release,
    rt: Runtime,
    make: Factory,
    conn: Connection,
    processes: int,
) -> None:
    last = await value(conn, "SELECT max(number) FROM draftsman.jobs")
    missing = [n for n in checksums(functions=False) if n not in release.manifest["migrations"]]
    # the submitter has none of the roles
    done = await upgrade.installation.run("people", "import", "--yes")
    assert done.returncode == 0, done.stderr
    old = upgrade.old(WORKER)
    submitter = upgrade.old(SUBMITTER)
    await more(upgrade, old=True)
    applied = sorted(await upgrade.migrate(processes))
    assert applied == [[]] * (processes - 1) + [[*missing, WIDE_MIGRATION[0]]]
    await more(upgrade, old=True)
    new = upgrade.installation.start("worker")
    await more(upgrade, old=False)
    await more(upgrade, old=True)
    held = last + 1
    asking = last + 2
    await until(lambda: _waits(rt, asking), "the question")
    await make.answer(asking, "red")
    old.signal(signal.SIGTERM)
    await old.says("draining ")
    await more(upgrade, old=False)
    (upgrade.installation.folder / "go").touch()
    assert await old.end() == 0, old.output_text
    old_worker = upgrade.old(WORKER)  # of two versions, the older may still be started
    await more(upgrade, old=True)
    (upgrade.installation.folder / "stop").touch()
    assert await submitter.end() == 0, submitter.output_text
    created = await rows(conn, "SELECT number FROM draftsman.jobs WHERE number > %s", (last,))
    # a rejected submission leaves a gap
    jobs = [await wait_for_end(rt, number) for (number,) in created]
    assert {job.status for job in jobs} == {Status.COMPLETED}
    for job in jobs:
        events = await rt.read_model.job_events(job.number)
        assert job.run_count == 1 + (job.number == asking), (job, events)
    assert Counter(job for job, _ in upgrade.ran()) == Counter(job.number for job in jobs)
    assert (held, True) in upgrade.ran()
    for worker in (new, old_worker):
        worker.signal(signal.SIGTERM)
        assert await worker.end() == 0, worker.output_text
    for process in (old, submitter, new, old_worker):
        assert "Traceback" not in process.output_text
        assert "ERROR" not in process.output_text
    assert (
        f"the database schema is newer than this version (it has {WIDE_MIGRATION[0]}); continuing"
        in new.output_text
    )
    assert not any((await rt.read_model.invariants()).values())


async def _waits(rt: Runtime, number: int) -> bool:
    return bool(await rt.questions.open(number))


async def test_worker_does_not_start_on_an_older_schema(release: Release, upgrade: Upgrade) -> None:
    missing = [n for n in checksums(functions=False) if n not in release.manifest["migrations"]]
    missing.append(WIDE_MIGRATION[0])
    for name in ("worker", "up"):
        done = await upgrade.next(name)
        assert (done.returncode, done.stdout) == (6, "")
        assert done.stderr == (
            f"draftsman: pending migrations: {', '.join(missing)}; run: draftsman migrate\n"
        )
