"""The server stopped at once, as by a crash, while a worker stands in the middle of something."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from draftsman.runtime import Runtime
from tests.factories import Factory
from tests.kill.faults import crash
from tests.kill.strikes import at_queries
from tests.support.clock import Clock
from tests.support.server import Server, make_home

CRASHES: Final = {
    "claim.exchange committed",
    "progress.finish_step after",
    "progress.checkpoint committed",
    "questions.ask committed",
    "settle.settle committed",
    "sweeps.promote after",
}
"""Where it crashes in each test run; `make soak` lets it crash at all points."""


@pytest.fixture
def server() -> Iterator[Server]:
    """Give a server of its own, which may be crashed."""
    own = Server(make_home(), None)
    yield own
    own.end()


@pytest.mark.timeout(400)
async def test_the_server_crashes(
    rt: Runtime,
    make: Factory,
    clock: Clock,
    server: Server,
    database_url: str,
    empty_url: str,
    tmp_path: Path,
) -> None:
    strike = crash(server)
    await at_queries(strike, set(CRASHES), rt, make, clock, (database_url, empty_url), tmp_path)
