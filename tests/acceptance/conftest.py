"""Places for processes: on a database of the session's server, or with a server of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.processes import DEADLINE, Place
from tests.core.loops import crews
from tests.support import waits


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes take their time to start on a busy machine."""
    for module in (waits, crews):
        monkeypatch.setattr(module, "DEADLINE", DEADLINE)


@pytest.fixture
def database(own_database: str) -> str:
    """Give a database that no process of another test can come back to."""
    return own_database


@pytest.fixture
def places(database_url: str, tmp_path: Path) -> Iterator[Callable[[str], Place]]:
    """Give places by name, as many hosts on one database."""
    made: dict[str, Place] = {}

    def place(name: str) -> Place:
        return made.setdefault(name, Place(tmp_path / name, database_url))

    yield place
    for one in made.values():
        one.close()


@pytest.fixture
def place(places: Callable[[str], Place]) -> Place:
    """Give one place."""
    return places("here")
