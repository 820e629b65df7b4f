"""Figures of a load of some minutes, and of the limits of the machine."""

from __future__ import annotations

import pytest

from bench import checks, floor, schedule
from bench.install import ours
from bench.measure import Run
from bench.queue_process import load_contestant
from bench.report import VACUUM, Key, Results, tables
from bench.resource_usage import server_cpu
from bench.server import BenchError, BenchServer, session
from bench.vacuum import Sample, _figures, load
from draftsman.database.database import Connection
from draftsman_testing.factories import Factory


def samples(*finished: int, claim: int = 8192) -> list[Sample]:
    """Return a sample each minute, with tables that grow by 1 kB a job and indexes by half."""
    return [
        Sample(
            seconds=60.0 * number,
            finished=jobs,
            tables=jobs * 1000,
            indexes=jobs * 500,
            claim=claim * (1 + number),
            dead=0.25 if number == 2 else 0.05,
            vacuums=3 + number,
        )
        for number, jobs in enumerate(finished)
    ]


def test_figures_of_a_load_compare_its_quarters() -> None:
    figures = _figures(samples(0, 6000, 12000, 18000, 21000))
    assert figures["rate"] == pytest.approx(21000 / 240)
    assert figures["rate_kept"] == pytest.approx(0.5)
    assert figures["table_mb"] == pytest.approx(1000)
    assert figures["index_mb"] == pytest.approx(500)
    assert figures["claim_grows"] == pytest.approx(2.5)
    assert (figures["dead_percent"], figures["dead_end_percent"]) == (25, 5)
    assert figures["vacuums"] == 4


def test_load_has_a_line_for_each_figure() -> None:
    results = Results()
    results.add(Key("vacuum", "draftsman"), _figures(samples(0, 10, 20, 30, 40)))
    lines = tables(results).splitlines()
    assert lines[0].split("|")[1:3] == [f" {'vacuum':45} ", " new database "]
    assert any("runs of autovacuum" in line and "4.00" in line for line in lines)
    results.add(Key("vacuum", "draftsman", True), _figures(samples(0, 10, 20, 30, 40)))
    assert "past / none" in tables(results).splitlines()[0]


def test_limits_of_the_machine_have_a_table_without_draftsman() -> None:
    results = Results()
    results.add(Key("floor", "commits"), {"rate": 900.0})
    results.add(Key("floor", "swap of 10"), {"rate": 9000.0, "server_us": 40.0})
    heads, _, commits, swap = tables(results).splitlines()
    assert [cell.strip() for cell in heads.split("|")[1:-1]] == ["floor", "per s", "server CPU us"]
    assert "900" in commits
    assert "9,000" in swap


def test_load_is_measured_only_by_name() -> None:
    extra = [scenario.name for scenario in schedule.scenarios(1000, None) if scenario.extra]
    assert extra == ["vacuum"]


async def test_totals_of_a_load_are_checked(
    database_url: str, make: Factory, conn: Connection
) -> None:
    first = await make.completed()
    await make.completed()
    await checks.loaded(database_url, first, 1)
    with pytest.raises(BenchError, match=r"\[2, 2, 2, 8\], not \[3, 3, 3, 12\]"):
        await checks.loaded(database_url, 0, 3)
    await conn.execute("SET session_replication_role = replica")
    await conn.execute("DELETE FROM draftsman.job_runs WHERE job = %s", (first,))
    with pytest.raises(BenchError, match=r"\[2, 2, 1, 8\]"):
        await checks.loaded(database_url, 0, 2)


async def test_load_submits_and_completes_jobs(
    database: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.vacuum.AHEAD", 200)
    monkeypatch.setattr("bench.vacuum.BATCHES", 200)
    monkeypatch.setattr("bench.vacuum.EVERY", 0.1)
    program = ours()
    side = await load_contestant("draftsman", program.command, program.environment)
    async with session(database_url) as admin:
        place = BenchServer(database_url, admin)
        run = Run(place, side, database, "fast", 0, server_cpu(admin.conn))
        figures = await load(run, 0.5 / 60)
    assert figures["jobs"] >= 200
    assert figures["wal_bytes"] > 500
    assert set(figures) <= set(VACUUM)


async def test_swap_of_the_floor_claims_each_job_once(
    database: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(floor, "SECONDS", 1)
    monkeypatch.setattr(floor, "ROWS", 100_000)
    program = ours()
    side = await load_contestant("draftsman", program.command, program.environment)
    async with session(database_url) as admin:
        run = Run(BenchServer(database_url, admin), side, database, "default", 0, None)
        swaps = await floor.swap10(run)
        commits = await floor.commits(run)
    assert swaps["rate"] > 0
    assert swaps["wal_bytes"] > 50
    assert commits["rate"] > 0
