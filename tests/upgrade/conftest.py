"""Databases in the state of each release."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.server import Server
from tests.upgrade.releases import Release, releases


@pytest.fixture(params=releases(), ids=lambda release: str(release.version))
def release(request: pytest.FixtureRequest) -> Release:
    """Provide each release in turn."""
    frozen: Release = request.param
    return frozen


@pytest.fixture
def database(server: Server, release: Release) -> Iterator[str]:
    """Provide a database with the data of the release, two days after its last question."""
    name = server.create(migrated=False)
    release.load(server.url(name))
    server.set(name, "draftsman.clock_offset", "2 days")
    yield name
    server.leave(name)
