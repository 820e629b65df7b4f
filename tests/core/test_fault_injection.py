"""Fault injection into the embedded server: cut connections, shifted clock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from draftsman import migrate
from draftsman.embedded import EmbeddedServer
from draftsman.errors import DatabaseUnreachable
from draftsman_soak.fault_injection import cut_connections, shift_clock
from tests.conftest import SERVER
from tests.core.embedded_support import shared_initdb, stop_server, value

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
