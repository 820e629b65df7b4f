"""Manual pruning and the messages about archived events."""

from __future__ import annotations

from pathlib import Path

import pytest

from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from draftsman.settings import Settings
from draftsman_testing.factories import Factory
from tests.support.clock import Clock
from tests.support.event_history import age_events, wait_for_feed, with_retention
from tests.tui.cli.cli_runner import Cli
from tests.tui.cli.conftest import As


@pytest.fixture
def settings(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Give the command line the same retention as the test's own services."""
    monkeypatch.setenv("DRAFTSMAN_RETENTION__EVENTS", "12")
    monkeypatch.setenv("DRAFTSMAN_RETENTION__ARCHIVE_DIR", str(tmp_path / "archive"))
    return with_retention(settings, tmp_path / "archive", events=12)


async def test_a_dry_run_lists_the_months_and_the_jobs_that_block_them(
    cli: Cli, make: Factory, clock: Clock
) -> None:
    assert "older than retention.events" in (await cli("sweep", "prune", "--dry-run")).err
    await age_events(make, clock)
    (month,) = (await cli("sweep", "prune", "--dry-run", "--json")).json
    assert (month["state"], month["holders"]) == ("can be pruned", 0)
    held = await make.asked()
    output = (await cli("sweep", "prune", "--dry-run")).out.splitlines()
    assert output[0].split() == ["MONTH", "EVENTS", "STATE"]
    assert output[1].endswith(f"held by D-{held.number} (waiting_for_input)")
    done = await cli("sweep", "prune")
    assert (done.out, done.code) == ("prune: changed 0 rows\n", 0)
    assert f"held by D-{held.number} (waiting_for_input)" in done.err
    (await cli("sweep", "deregister", "--dry-run")).refused(2, "--dry-run requires the sweep prune")


async def test_without_a_retention_nothing_is_pruned(
    cli: Cli, make: Factory, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTSMAN_RETENTION__EVENTS", "never")
    await age_events(make, clock)
    assert (await cli("sweep", "prune")).out == "prune: changed 0 rows\n"
    assert "kept forever" in (await cli("sweep", "prune", "--dry-run")).err
    monkeypatch.setenv("DRAFTSMAN_RETENTION__EVENTS", "0")
    (await cli("jobs")).refused(2, "DRAFTSMAN_RETENTION__EVENTS", "must be at least 1")


async def test_a_query_of_pruned_events_names_the_archive(
    cli: Cli, as_: As, rt: Runtime, make: Factory, clock: Clock
) -> None:
    assert "no events" in (await cli("archives", "list")).err
    job, *_ = await age_events(make, clock)
    await wait_for_feed(rt)
    events = (await cli("events", "--json")).lines
    await rt.archives.prune(LeaderTerm())
    (archive,) = (await cli("archives", "list", "--json")).json
    path = archive["path"]
    month = archive["month"][:7]
    assert archive["events"] == len(events)
    assert path in (await cli("archives", "list")).out.replace("\n", "")

    hint = f"4 events of {month} archived to {archive['host']}:{path}"
    result = await cli("events", f"D-{job}")
    assert hint in result.err
    assert result.out == ""
    assert hint in " ".join((await cli("show", f"D-{job}")).out.split())
    assert (await cli("show", f"D-{job}", "--json")).json["archives"][0]["path"] == path
    assert f"{len(events)} events of {month} archived" in (await cli("events")).err
    middle = events[3]["cursor"]
    last = events[-1]["cursor"]
    assert (
        f"{len(events)} events of {month} archived" in (await cli("events", "--after", middle)).err
    )
    assert "left" not in (await cli("events", "--after", last)).err

    assert "archives        1 file" in (await cli("doctor")).out
    Path(path).rename(f"{path}.away")
    assert f"events of {month}" in " ".join((await cli("doctor")).out.split())
    Path(f"{path}.away").rename(path)
    assert f"{path} is valid" in (await cli("archives", "check", path)).out
    (await as_("anna")("archives", "restore", path)).refused(1, "may not restore", "olga")
    assert (await cli("archives", "restore", path)).out.startswith(f"{len(events)} events of ")
    await wait_for_feed(rt)
    assert (await cli("events", "--json")).lines == events
    assert "left" not in (await cli("events", f"D-{job}")).err


async def test_a_corrupt_archive_is_refused_in_one_line(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(b"no archive")
    for verb in ("check", "restore"):
        (await cli("archives", verb, tmp_path / "a.gz")).refused(
            1, "is not a valid event archive", "gzip"
        )
        (await cli("archives", verb, tmp_path / "none.gz")).refused(2, "does not exist")
