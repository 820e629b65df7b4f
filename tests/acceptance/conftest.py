"""Process environments with a database of the session's server, or an embedded server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.processes import DEADLINE, Installation
from tests.core.loops import workers
from tests.support import waits


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes take their time to start on a busy machine."""
    for module in (waits, workers):
        monkeypatch.setattr(module, "DEADLINE", DEADLINE)


@pytest.fixture
def database(own_database: str) -> str:
    """Give a database that no process of another test can come back to."""
    return own_database


@pytest.fixture
def places(database_url: str, tmp_path: Path) -> Iterator[Callable[[str], Installation]]:
    """Give places by name, as many hosts on one database."""
    made: dict[str, Installation] = {}

    def place(name: str) -> Installation:
        return made.setdefault(name, Installation(tmp_path / name, database_url))

    yield place
    for one in made.values():
        one.close()


@pytest.fixture
def place(places: Callable[[str], Installation]) -> Installation:
    """Give one place."""
    return places("here")
