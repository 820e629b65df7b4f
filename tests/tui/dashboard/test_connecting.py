"""The first connection: the screen is drawn before it, and usable until it is open."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import textual.app
from pydantic import SecretStr
from textual.pilot import Pilot

from draftsman.database.embedded import EmbeddedServer
from draftsman.errors import EmbeddedServerError, SchemaOutdated
from draftsman.settings import Settings, settings_model
from draftsman_testing.factories import Factory
from draftsman_tui.cli.app import App
from draftsman_tui.cli.processes.dashboard import connector, create_dashboard, server_name
from draftsman_tui.dashboard.app import Dashboard
from tests.core.worker.cuttable_proxy import CuttableProxy
from tests.support.cases import cases
from tests.tui.dashboard.pilot import DashboardPilot

SIZE: Final = (120, 30)


class SilentServer:
    """Accepts connections, and forwards them to a database only once it is released.

    Until then it keeps them open, or closes them if it is `down`.
    """

    def __init__(self, url: str, folder: str) -> None:
        self.accepted = asyncio.Event()
        self.released = asyncio.Event()
        self.down = False
        self._proxy = CuttableProxy(url, folder)
        self.url = self._proxy.url

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle a connection."""
        self.accepted.set()
        if self.down:
            writer.close()
            return
        await self.released.wait()
        await self._proxy.pass_on(reader, writer)

    def close(self) -> None:
        """Let all connections end."""
        self._proxy.cut()
        self.released.set()


def quit_after(event: asyncio.Event) -> Callable[[Pilot[Any]], Coroutine[Any, Any, None]]:
    """Return the actions of a user who quits after an event."""

    async def act(pilot: Pilot[Any]) -> None:
        await event.wait()
        await pilot.press("q")

    return act


@asynccontextmanager
async def silent_server(settings: Settings) -> AsyncIterator[tuple[SilentServer, Settings]]:
    """Start a silent server before a database; yield it with settings that use it."""
    assert settings.database_url is not None
    with tempfile.TemporaryDirectory() as folder:
        silent = SilentServer(settings.database_url.get_secret_value(), folder)
        server = await asyncio.start_unix_server(silent.accept, Path(folder, ".s.PGSQL.5432"))
        try:
            yield silent, settings.model_copy(update={"database_url": SecretStr(silent.url)})
        finally:
            silent.close()
            server.close()
            await server.wait_closed()


def create(settings: Settings, connections: AsyncExitStack, **options: Any) -> Dashboard:
    """Create the dashboard as its command does."""
    app = App()
    app._settings = settings
    return create_dashboard(app, connector(app, connections), **options)


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[DashboardPilot]:
    """Open a dashboard that may not be connected yet."""
    async with AsyncExitStack() as connections:
        app = create(settings, connections)
        async with app.run_test(size=SIZE) as pilot:
            yield DashboardPilot(pilot, app)


async def test_the_frame_is_shown_before_the_database_answers(
    make: Factory, settings: Settings
) -> None:
    await make.queued()
    async with silent_server(settings) as (silent, slow), opened(slow) as seen:
        await silent.accepted.wait()
        await seen.see("Connecting to PostgreSQL …", "jobs · loading …")
        await seen.see("JOB", "STATUS", "q quit", "? help")
        silent.released.set()
        await seen.rows("D-1")
        await seen.see("queued 1", "no workers")
        assert "Connecting" not in seen.text


async def test_commands_without_data_work_before_the_database_answers(settings: Settings) -> None:
    async with silent_server(settings) as (silent, slow), opened(slow) as seen:
        await silent.accepted.wait()
        await seen.command("inbox by:me")
        await seen.see("inbox · loading … · /by:me")
        await seen.command("theme light")
        assert seen.app.theme == "light"
        await seen.press("question_mark")
        await seen.dialog("HelpDialog")
        assert "not permitted" not in seen.text
        await seen.press("escape")
        for line in ("new", "people", "job D-1", "sweep expire"):
            await seen.command(line)
            await seen.wait_for_toast("not connected to PostgreSQL yet; try again later")
            seen.app.clear_notifications()
        silent.released.set()
        await seen.see("Nothing in inbox matches")


async def test_an_unreachable_database_is_retried_until_it_answers(
    make: Factory, settings: Settings
) -> None:
    await make.queued()
    async with silent_server(settings) as (silent, slow):
        silent.down = True
        async with opened(slow) as seen:
            await seen.see("Database unreachable. Retrying", "Connecting to", "JOB", "q quit")
            silent.down = False
            silent.released.set()
            await seen.press("ctrl+r")
            await seen.rows("D-1")
            assert "unreachable" not in seen.text
            assert "Connecting" not in seen.text


async def test_quitting_ends_the_attempt_to_connect(settings: Settings) -> None:
    async with silent_server(settings) as (silent, slow), AsyncExitStack() as connections:
        app = create(slow, connections)
        await app.run_async(headless=True, size=SIZE, auto_pilot=quit_after(silent.accepted))
        assert not app.session.connection.is_connected
        assert app._polling is not None
        assert app._polling.is_finished


async def test_quitting_stops_the_start_of_the_embedded_server(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loop = asyncio.get_running_loop()
    starting = asyncio.Event()
    closed = asyncio.Event()
    canceled = threading.Event()
    ended = threading.Event()

    def ensure(_: EmbeddedServer) -> str:
        loop.call_soon_threadsafe(starting.set)
        assert canceled.wait(30)
        asyncio.run_coroutine_threadsafe(closed.wait(), loop).result(30)
        ended.set()
        raise EmbeddedServerError("canceled")

    monkeypatch.setattr(EmbeddedServer, "ensure", ensure)

    async def run_async(*args: Any, **options: Any) -> None:
        await run(*args, **options)
        closed.set()

    run = textual.app.App.run_async
    monkeypatch.setattr(textual.app.App, "run_async", run_async)
    monkeypatch.setattr(EmbeddedServer, "cancel_start", lambda _: canceled.set())
    embedded = settings.model_copy(update={"database_url": None, "data_dir": tmp_path})
    async with AsyncExitStack() as connections:
        app = create(embedded, connections)
        await app.run_async(headless=True, size=SIZE, auto_pilot=quit_after(starting))
        assert ended.is_set()


async def test_a_database_without_a_schema_ends_the_dashboard_with_the_command(
    settings: Settings, empty_url: str
) -> None:
    empty = settings.model_copy(update={"database_url": SecretStr(empty_url)})
    async with AsyncExitStack() as connections:
        app = create(empty, connections)
        with pytest.raises(SchemaOutdated, match="draftsman migrate"):
            await app.run_async(headless=True, size=SIZE)


async def test_the_frame_is_shown_while_the_embedded_server_starts(
    make: Factory, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await make.queued()
    url = settings.database_url
    may_start = threading.Event()
    assert url is not None

    def ensure(_: EmbeddedServer) -> str:
        assert may_start.wait(30)
        return url.get_secret_value()

    monkeypatch.setattr(EmbeddedServer, "ensure", ensure)
    embedded = settings.model_copy(update={"database_url": None, "data_dir": tmp_path})
    async with opened(embedded) as seen:
        await seen.see("Connecting to the embedded PostgreSQL …", "JOB", "q quit")
        may_start.set()
        await seen.rows("D-1")


@cases(
    ("url", "name"),
    [
        (None, "the embedded PostgreSQL"),
        ("postgresql://anna:secret@db.example:6543/jobs?sslmode=require", "db.example:6543/jobs"),
        ("postgresql://a.example,b.example/jobs", "a.example,b.example/jobs"),
        ("postgresql:///jobs?host=/run/postgresql&password=secret", "PostgreSQL"),
        ("host=db.example password=secret", "PostgreSQL"),
    ],
)
def test_a_server_is_named_without_credentials(url: str | None, name: str) -> None:
    secret = None if url is None else SecretStr(url)
    assert server_name(settings_model().model_validate({"database_url": secret})) == name
