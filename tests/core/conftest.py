"""Fixtures of tests of the embedded server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from draftsman.database.embedded import EmbeddedServer
from tests.conftest import SERVER
from tests.core.database.embedded.embedded_support import shared_initdb, stop_server


@pytest.fixture
def empty(folder: Path) -> Iterator[Path]:
    """Give a directory that every user may enter; no server in it outlives the test."""
    yield folder
    for cluster in folder.glob("**/postgres18"):
        stop_server(EmbeddedServer(cluster.parent, 0))


@pytest.fixture
def copied_initdb(pytestconfig: pytest.Config) -> Iterator[None]:
    """Create databases by a copy, for tests that do not test initdb."""
    with shared_initdb(pytestconfig.stash[SERVER].home):
        yield
