"""The plugin of pytest: apps that run the declared jobs of a test when it drains them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from draftsman.testing import MemoryApp, WorkerApp
    from draftsman.testing.databases import MakeDatabase


@pytest.fixture
def draftsman_app() -> Iterator[MemoryApp]:
    """Run the jobs that the test submits in memory, without a database, when it drains them."""
    from draftsman.testing import MemoryApp

    app = MemoryApp()
    with app.installed():
        yield app


@pytest.fixture
def draftsman_worker(
    draftsman_database_url: str, draftsman_tables: Mapping[str, Any], tmp_path: Path
) -> Iterator[WorkerApp]:
    """Run the jobs that the test submits by a worker, on a database, when it drains them."""
    from draftsman.testing import WorkerApp

    data_dir = tmp_path / "draftsman"
    with WorkerApp(draftsman_database_url, data_dir, draftsman_tables) as app, app.installed():
        yield app


@pytest.fixture
def draftsman_tables() -> Mapping[str, Any]:
    """Provide tables of the configuration of `draftsman_worker`, such as `people`."""
    return {}


@pytest.fixture
def draftsman_database_url(_draftsman_databases: MakeDatabase) -> str:
    """Provide the URL of a migrated database that only this test uses."""
    return _draftsman_databases()


@pytest.fixture(scope="session")
def _draftsman_databases() -> Iterator[MakeDatabase]:
    from draftsman.testing.databases import temporary_databases

    with temporary_databases() as make:
        yield make
