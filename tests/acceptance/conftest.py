"""Process environments with a database of the session's server, or an embedded server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from draftsman_testing import waits
from tests.acceptance.processes import DEADLINE, Installation
from tests.core.worker import workers


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Double the timeouts, because processes start slowly on a busy machine."""
    for module in (waits, workers):
        monkeypatch.setattr(module, "DEADLINE", DEADLINE)


@pytest.fixture
def every() -> int:
    """Provide how many moments of a story there are for each kill of bots; `make soak` has one."""
    return 2


@pytest.fixture
def database(own_database: str) -> str:
    """Provide a database that no process of another test can connect to."""
    return own_database


@pytest.fixture
def installations(database_url: str, tmp_path: Path) -> Iterator[Callable[[str], Installation]]:
    """Provide installations by name, as several hosts on one database."""
    created: dict[str, Installation] = {}

    def create(name: str) -> Installation:
        return created.setdefault(name, Installation(tmp_path / name, database_url))

    yield create
    for created_installation in created.values():
        created_installation.close()


@pytest.fixture
def installation(installations: Callable[[str], Installation]) -> Installation:
    """Provide an installation."""
    return installations("here")
