"""Thousands of Slack events with duplicate deliveries during a database stall.

Needs nothing but the embedded server; takes half a minute.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from draftsman.database.database import Connection, Database
from draftsman.runtime import Runtime
from draftsman.settings import Settings
from tests.bots.slack.transport.conftest import JobTexts
from tests.bots.slack.transport.service_harness import (
    ServiceHarness,
    over_http,
    over_sockets,
    patient_runtime,
)
from tests.bots.slack.transport.test_many import deliver_during_stall

MESSAGES = 1008


@pytest.mark.timeout(600)
@pytest.mark.parametrize("transport", [over_http, over_sockets])
async def test_4032_events_while_the_database_stalls(
    transport: Callable[[Runtime], AbstractAsyncContextManager[ServiceHarness]],
    settings: Settings,
    database_url: str,
    conn: Connection,
    db: Database,
) -> None:
    async with patient_runtime(settings, database_url) as rt, transport(rt) as rig:
        await deliver_during_stall(rig, JobTexts(conn), db, MESSAGES)
