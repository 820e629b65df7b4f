"""Fixtures: the bot over each transport."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from draftsman.database.database import Connection
from draftsman.runtime import Runtime
from draftsman.settings import Settings
from tests.bots.slack.transport.service_harness import (
    ServiceHarness,
    over_http,
    over_sockets,
    patient_runtime,
)


@pytest.fixture
async def patient(settings: Settings, database_url: str) -> AsyncIterator[Runtime]:
    """Provide the runtime with the timeouts of the bot process."""
    async with patient_runtime(settings, database_url) as rt:
        yield rt


@pytest.fixture
async def http(patient: Runtime) -> AsyncIterator[ServiceHarness]:
    """Provide a bot over HTTP."""
    async with over_http(patient) as rig:
        yield rig


@pytest.fixture
async def socket(patient: Runtime) -> AsyncIterator[ServiceHarness]:
    """Provide a bot with two Socket Mode connections."""
    async with over_sockets(patient) as rig:
        yield rig


@pytest.fixture(params=["http", "socket"])
async def either(request: pytest.FixtureRequest, patient: Runtime) -> AsyncIterator[ServiceHarness]:
    """Provide a bot over each transport."""
    async with (over_http if request.param == "http" else over_sockets)(patient) as rig:
        yield rig


@pytest.fixture
async def jobs(conn: Connection) -> JobTexts:
    """Provide the texts of the jobs."""
    return JobTexts(conn)


class JobTexts:
    """The jobs of the test's database."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    async def texts(self) -> list[str]:
        """Return the text of each job, oldest first."""
        cursor = await self._conn.execute("SELECT ticket_text FROM draftsman.jobs ORDER BY number")
        return [text for (text,) in await cursor.fetchall()]
