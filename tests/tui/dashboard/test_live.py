"""Refresher: loads after events, and reconnects to a lost database."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from psycopg import AsyncConnection
from textual.message import Message

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime, open_runtime
from draftsman.settings import Settings
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from draftsman_tui.dashboard.frame import refresher as module
from draftsman_tui.dashboard.frame.messages import RowsLoaded
from draftsman_tui.dashboard.frame.refresher import Refresher, TableLoader
from draftsman_tui.dashboard.tables.filter import NOTHING
from draftsman_tui.dashboard.tables.resource import Query, Rows
from draftsman_tui.dashboard.views import VIEWS
from tests.support.event_history import wait_for_feed
from tests.support.server import Server
from tests.tui.dashboard.pilot import connected, open_dashboard


def _live(rt: Runtime, owner: Actor) -> tuple[Refresher, list[Message]]:
    posted: list[Message] = []
    live = Refresher(connected(rt, owner), posted.append)
    live.show(TableLoader(VIEWS["jobs"], Query(NOTHING, live.now)))
    return live, posted


async def test_page_is_loaded_on_request_or_after_an_event(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    live, posted = _live(rt, owner)
    assert not await live.poll()
    assert [type(message) for message in posted] == [RowsLoaded]
    assert not await live.poll()
    assert len(posted) == 1
    live.refresh()
    assert not await live.poll()
    assert [type(message) for message in posted[1:]] == [RowsLoaded]
    await make.queued()
    await until(live.poll, "the event")
    assert [type(message) for message in posted[2:]] == [RowsLoaded]
    assert not await live.poll()


async def test_refresher_far_behind_continues_at_the_present(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    live, posted = _live(rt, owner)
    await live.poll()
    for _ in range(70):
        await make.running()
    await wait_for_feed(rt)
    await until(live.poll, "the events")
    assert isinstance(loaded := posted[-1], RowsLoaded)
    assert len(loaded.rows.items) == 70
    assert not await live.poll()


async def test_unrelated_events_do_not_load_the_view(
    make: Factory, rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, posted = _live(rt, owner)
    await live.poll()
    monkeypatch.setattr(TableLoader, "is_affected_by", lambda loader, events: events[0].job == 2)
    await make.queued()
    await until(live.poll, "the event")
    assert [type(message) for message in posted] == [RowsLoaded]
    await make.queued()
    await until(live.poll, "the event")
    assert [type(message) for message in posted[1:]] == [RowsLoaded]


async def test_lost_database_is_reported_and_reconnected(
    make: Factory, settings: Settings, owner: Actor, server: Server, database: str
) -> None:
    await make.queued()
    async with open_runtime(settings) as rt, open_dashboard(rt, owner) as seen:
        await seen.rows("D-1")
        admin = await AsyncConnection.connect(server.url("postgres"), autocommit=True)
        await cut(admin, database)
        await seen.see("Database unreachable. Showing data from", "Retrying", "D-1")
        assert "db start" not in seen.text
        await admin.execute(f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS true')
        await admin.close()
        await seen.wait_for_toast("Reconnected")
        assert "unreachable" not in seen.text
    assert (await make.rt.read_model.job(1)).status is Status.QUEUED


async def test_stopped_embedded_database_is_reported_with_its_command_before_the_pool_timeout(
    make: Factory, settings: Settings, owner: Actor, server: Server, database: str
) -> None:
    await make.queued()
    patient = settings.database.model_copy(update={"connect_timeout": 300.0})
    slow = settings.model_copy(update={"database": patient})
    async with (
        open_runtime(slow) as opened,
        open_dashboard(replace(opened, embedded=True), owner) as seen,
    ):
        await seen.rows("D-1")
        admin = await AsyncConnection.connect(server.url("postgres"), autocommit=True)
        await cut(admin, database)
        await seen.see("Database unreachable. Showing data from", "draftsman db start", "D-1")
        await seen.see("Retrying in")
        await admin.execute(f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS true')
        await admin.close()
        await seen.wait_for_toast("Reconnected")


async def test_slow_database_is_not_reported_as_unreachable(
    make: Factory, rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make.queued()
    live, posted = _live(rt, owner)
    probed = asyncio.Event()
    probe = live._probe

    async def noted() -> None:
        await probe()
        probed.set()

    async def slow(page: TableLoader, rt: Runtime, now: object) -> RowsLoaded:
        await probed.wait()
        return RowsLoaded(page.resource, page.query, Rows([]))

    monkeypatch.setattr(live, "_probe", noted)
    monkeypatch.setattr(TableLoader, "read", slow)
    monkeypatch.setattr(module, "LOAD_TIMEOUT", 0.01)
    await live._poll_with_timeout()
    assert [type(message) for message in posted] == [RowsLoaded]


async def cut(admin: Connection, database: str) -> None:
    await admin.execute(f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS false')
    await admin.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s",
        (database,),
    )


async def test_read_only_is_enforced_by_the_database_session(
    make: Factory, settings: Settings, owner: Actor
) -> None:
    from draftsman.errors import Refused

    job = await make.queued()
    async with open_runtime(settings, read_only=True) as rt:
        with pytest.raises(Refused, match="read-only"):
            await rt.job_control.cancel(job, owner)
        async with open_dashboard(rt, owner, read_only=True) as seen:
            await seen.see("read-only", f"D-{job}")
            await seen.press("c")
            await seen.wait_for_toast("cancel: this dashboard is read-only")
            for key, name in {
                "r": "retry",
                "n": "new",
                "a": "answer",
                "ctrl+k": "cancel-force",
            }.items():
                await seen.press(key)
                await seen.wait_for_toast(f"{name}: this dashboard is read-only")
            await seen.command("sweep expire")
            await seen.wait_for_toast("sweep: this dashboard is read-only")
            await seen.press("w")
            await seen.see(f"D-{job} queued")
    assert (await make.rt.read_model.job(job)).status is Status.QUEUED
