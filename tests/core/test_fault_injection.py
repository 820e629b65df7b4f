"""Fault injection: sessions of the embedded server, its network, and the clock of the host."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from draftsman.database import migrate
from draftsman.database.embedded import EmbeddedServer
from draftsman.errors import DatabaseUnreachable
from draftsman_soak.fault_injection import (
    accept_ends,
    cut_connections,
    make_read_only,
    make_writable,
    prepare_refusals,
    refuse_end,
    shift_clock,
)
from draftsman_soak.host_clock import BOOT_TIME, STAT, HostClock
from draftsman_soak.silent_network import SilentNetwork
from tests.conftest import SERVER
from tests.core.database.embedded.embedded_support import shared_initdb, stop_server, value

AHEAD = "SELECT extract(epoch FROM draftsman.now() - pg_catalog.now())::float8"


@pytest.fixture
def server(folder: Path, pytestconfig: pytest.Config) -> Iterator[EmbeddedServer]:
    """Give the test its own server."""
    embedded = EmbeddedServer(folder / "data", 0)
    with shared_initdb(pytestconfig.stash[SERVER].home):
        yield embedded
    stop_server(embedded)


async def test_clients_of_a_server_are_disconnected_and_its_clock_is_shifted(
    server: EmbeddedServer,
) -> None:
    url = server.ensure()
    await migrate.migrate(url)
    with psycopg.connect(url) as old:
        for seconds in (90.5, -3600.0):
            shift_clock(server, seconds)
            assert value(url, AHEAD) == seconds
        assert value(url, AHEAD) == -3600.0
        row = old.execute(AHEAD.encode()).fetchone()
        assert row is not None
        assert row[0] == 0, "a session keeps its clock"
        assert cut_connections(server, 0) == 0
        assert cut_connections(server) == 1
        with pytest.raises(psycopg.OperationalError, match="terminating connection"):
            old.execute("SELECT 1")
    server.stop("immediate")
    with pytest.raises(DatabaseUnreachable, match="cannot connect to the database"):
        cut_connections(server)
    with pytest.raises(DatabaseUnreachable, match="cannot connect to the database"):
        shift_clock(server, 1)


async def test_sessions_are_read_only_and_ends_of_runs_are_refused(
    server: EmbeddedServer,
) -> None:
    url = server.ensure()
    await migrate.migrate(url)
    make_read_only(server)
    assert value(url, "SHOW transaction_read_only") == "on"
    make_writable(server)
    assert value(url, "SHOW transaction_read_only") == "off"
    prepare_refusals(server)
    assert refuse_end(server) is None, "no run is active"
    accept_ends(server)


async def test_a_silent_network_forwards_what_it_kept_when_it_is_restored(
    server: EmbeddedServer,
) -> None:
    server.ensure()
    network = SilentNetwork(server)
    async with (
        network.open(),
        await psycopg.AsyncConnection.connect(network.url, autocommit=True) as connection,
    ):
        await connection.execute("SELECT 1")
        network.silence()
        waiting = asyncio.create_task(connection.execute("SELECT 2"))
        done, _ = await asyncio.wait({waiting}, timeout=0.2)
        assert not done
        network.restore()
        row = await (await waiting).fetchone()
        assert row == (2,)


def test_a_step_of_the_host_clock_moves_the_boot_time(tmp_path: Path) -> None:
    clock = HostClock(tmp_path / "stat")
    assert clock.wrapper()[-1] == str(tmp_path / "stat")

    def boot_time(path: Path) -> int:
        match = BOOT_TIME.search(path.read_text())
        assert match is not None
        return int(match[1])

    inode = clock.file.stat().st_ino
    for seconds in (2, -3602):
        clock.step(seconds)
    assert boot_time(clock.file) - boot_time(STAT) == -3600
    assert clock.file.stat().st_ino == inode, "a mounted file must not be replaced"
