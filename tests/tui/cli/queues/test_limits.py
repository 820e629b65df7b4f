"""`limits`: list and history, and the jobs that wait for places in other lists."""

from __future__ import annotations

import time

import pytest

from draftsman.database.database import Connection
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.limits import set_limits
from tests.tui.cli.cli_runner import Cli


async def test_limits_are_listed_with_their_use_and_changes(
    cli: Cli, rt: Runtime, make: Factory, conn: Connection
) -> None:
    assert "configured in [limits]" in (await cli("limits")).err
    assert (await cli("limits", "--json")).json == []
    cli.config.write_text(f"{cli.config.read_text()}\n[limits.queue.pay]\nrunning = 1\n")
    assert "the leader writes those of [limits]" in (await cli("limits")).err
    assert "have not changed" in (await cli("limits", "history")).err
    await set_limits(
        rt,
        conn,
        queue={"pay": {"running": 1, "rate": "5/1h"}},
        repo={"*": {"running": 3}},
        person={"*": {"rate": "9/1d", "burst": 3}},
    )
    first, held = [await make.queued(queue="pay") for _ in range(2)]
    lines = [line.split() for line in (await cli("limits")).out.splitlines()]
    assert lines[0] == ["LIMIT", "TAKEN", "STARTS", "WAITING", "NEXT", "HOLDERS"]
    assert lines[1:] == [
        ["each", "person", "9/1d,", "burst", "3"],
        ["person", "root", "1", "9/1d,", "burst", "3", "0", f"D-{first}"],
        ["queue", "pay", "1", "of", "1", "1", "of", "5/1h", "1", f"D-{first}"],
        ["each", "repo", "3", "each"],
    ]
    use = {use["name"]: use for use in (await cli("limits", "list", "--json")).json}["queue:pay"]
    assert (use["taken"], use["running"], use["waiting"], use["jobs"]) == (1, 1, 1, [first])
    assert f"1 of 1 running for queue pay: D-{first}" in (await cli("why", held)).out
    assert "a place: queue pay" in (await cli("jobs")).out
    listed = {job["number"]: job for job in (await cli("jobs", "--json")).json}
    assert (listed[held]["hold"], listed[held]["held_by"]) == ("limit", "queue:pay")
    assert "1 waits for limits" in (await cli("queues")).out
    assert (await cli("queues", "--json")).json[0]["limited"] == 1
    history = (await cli("limits", "history")).out
    assert "queue pay: running 1, rate 5/1h; each repo: running 3" in history
    assert len((await cli("limits", "history", "--json")).json) == 1


async def test_the_next_start_has_the_time_zone_of_the_terminal(
    cli: Cli, rt: Runtime, make: Factory, conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As all times: the rate allows a start an hour after the first one."""
    await set_limits(rt, conn, queue={"pay": {"rate": "1/1h"}})
    await make.running(queue="pay")
    held = await make.queued(queue="pay")
    (use,) = await rt.queues.limits()
    assert use.next_at is not None
    try:
        with monkeypatch.context() as patch:
            patch.setenv("TZ", "Asia/Tokyo")
            time.tzset()
            there = f"{use.next_at.astimezone():%H:%M:%S}"
            why = (await cli("why", f"D-{held}")).out
            listed = (await cli("limits")).out
            utc = (await cli("--utc", "why", f"D-{held}")).out
    finally:
        time.tzset()
    assert f"{there} JST" in why, why
    assert there in listed or f"{use.next_at:%m-%d}" in listed, listed
    assert f"{use.next_at:%H:%M:%S} UTC" in utc, utc
