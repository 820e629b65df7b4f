"""The board scenario, observed by webhook and poll: in order, and in many other orders.

Needs only the embedded server; takes a minute.
"""

from __future__ import annotations

import pytest

from draftsman.database.database import Connection
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from tests.bots.trello.board_scenario import SyncMode
from tests.bots.trello.fake.test_fake_refusals import send_nonsense
from tests.bots.trello.test_board_scenario import live

LIVES = [(SyncMode.BOTH, 11), *((SyncMode.STORM, seed) for seed in range(1, 11))]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("way", "seed"), LIVES)
async def test_board_scenario_creates_the_same_jobs(
    way: SyncMode, seed: int, rt: Runtime, conn: Connection, owner: Actor
) -> None:
    await live(way, rt, conn, owner, seed)


async def test_no_invalid_request_breaks_the_fake() -> None:
    await send_nonsense(step=1)
