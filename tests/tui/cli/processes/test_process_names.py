"""Names of draftsman's processes in the database: `pg_stat_activity` says whose a session is."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from psycopg.conninfo import make_conninfo

from draftsman.client import Draftsman
from draftsman.database.database import Connection
from draftsman.ids import worker_name
from draftsman.runtime import Runtime
from draftsman_testing.waits import until
from tests.support.statements import rows
from tests.tui.cli.cli_runner import COMMAND, IMPORTABLE, Cli, Terminal

PAGER: Final = """
[pagers.ops]
format = "pagerduty"
listen = "127.0.0.1:0"
secret = { env = "PAGER_SECRET" }
webhook_secret = { env = "PAGER_SECRET" }
"""
Start = Callable[..., Awaitable[Process]]
SESSIONS: Final = (
    "SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = current_database()"
)


@pytest.fixture
async def start(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    """Start commands; none outlives the test."""
    started: list[Process] = []
    monkeypatch.setenv("PAGER_SECRET", "0123456789abcdef")
    with cli.config.open("a", encoding="utf-8") as config:
        config.write(PAGER)

    async def run(*arguments: str) -> Process:
        command = [*COMMAND, "--config", str(cli.config), *arguments]
        process = await asyncio.create_subprocess_exec(
            *command, stdin=DEVNULL, stdout=DEVNULL, env={**os.environ, **IMPORTABLE}
        )
        started.append(process)
        return process

    yield run
    for process in started:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _names(conn: Connection) -> set[str]:
    return {name for (name,) in await rows(conn, SESSIONS)}


async def test_the_sessions_of_each_process_have_its_name(
    start: Start,
    terminal: Callable[..., Terminal],
    config: Callable[[str | None], Path],
    conn: Connection,
    rt: Runtime,
) -> None:
    for arguments in (
        ["worker"],
        ["bots"],
        ["web", "--listen", "127.0.0.1:0"],
        ["metrics", "--listen", "127.0.0.1:0"],
        ["events", "-f"],
    ):
        await start(*arguments)
    screen = terminal("dashboard")

    async def named() -> bool:
        screen.read()
        names = {f"draftsman worker {worker_name(row.id)}" for row in await rt.read_model.workers()}
        names |= {f"draftsman {name}" for name in ("bots", "web", "dashboard", "metrics")}
        names |= {"draftsman cli events"}
        return len(names) == 6 and names <= await _names(conn)

    async with Draftsman(config=config("root")):
        await until(named, "sessions of all processes")
        names = await _names(conn)
    assert "draftsman client" in names
    assert not [name for name in names if name in {"draftsman", "draftsman worker"}], names


async def test_the_name_of_the_url_or_of_the_environment_comes_first(
    start: Start, conn: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGAPPNAME", "of the environment")
    await start("events", "-f")
    url = make_conninfo(database_url, application_name="of the URL")
    monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", url)
    await start("events", "-f")

    async def named() -> bool:
        return {"of the environment", "of the URL"} <= await _names(conn)

    await until(named, "the names that the user gave")
