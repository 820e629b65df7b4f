"""Fixtures of the acceptance tests for processes, and a used database for the other attacks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.conftest import _patience, installation, installations
from tests.support.database_pool import Databases
from tests.support.guard_forks import NEW_GUARD
from tests.support.server import Server
from tests.tui.cli.conftest import as_, cli, config, me

__all__ = ["_patience", "as_", "cli", "config", "installation", "installations", "me"]


@pytest.fixture
def database(request: pytest.FixtureRequest, server: Server, databases: Databases) -> Iterator[str]:
    """Give a database, a new one if a process of an earlier test may reconnect to it."""
    if "installations" in request.fixturenames:
        yield (name := server.create())
        server.leave(name)
    else:
        yield (name := databases.acquire())
        databases.release(name)


@pytest.fixture(autouse=True)
def _new_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start guards as in production, not by forks."""
    monkeypatch.setenv(NEW_GUARD, "1")
