"""The whole core on every PostgreSQL that this machine has: the session's, and any other.

The head of the test run names those found. A test for each stands in the list: none is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from draftsman import migrate
from draftsman.domain.actor import Actor
from draftsman.domain.job import Status
from draftsman.domain.outcome import Done
from draftsman.runtime import wire
from draftsman.settings import Settings
from draftsman.store.db import Database
from draftsman.store.sweeps import Term
from tests.factories import GATE, Factory
from tests.support.clusters import Installation, cluster, found
from tests.support.people import GROUPS, PEOPLE, People
from tests.support.queries import QUERIES, plan

SERVERS = ["this session's", *found()]


@pytest.fixture(params=SERVERS, ids=str)
def fresh_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Give an empty database on each server in turn."""
    if isinstance(request.param, Installation):
        with cluster(request.param) as url:
            yield url
    else:
        yield request.getfixturevalue("empty_url")


async def test_the_core_works_there(fresh_url: str, owner: Actor) -> None:
    assert await migrate.migrate(fresh_url)
    settings = Settings.model_validate({"people": PEOPLE, "groups": GROUPS})
    db = Database(fresh_url, settings.database)
    await db.open()
    try:
        await _everything(db, settings, owner)
        async with db.connection() as conn:
            for family, name in QUERIES:
                await plan(conn, family, name)
    finally:
        await db.close()


async def _everything(db: Database, settings: Settings, owner: Actor) -> None:
    rt = wire(settings, db, False)
    make, people = Factory(rt, owner), People(rt.policy)
    numbers = {status: await make.job_in(status) for status in Status}
    for status, number in numbers.items():
        assert (await rt.inspect.job(number)).status is status
        assert (await rt.inspect.why(number)).status is status
    gate = await make.asked(GATE)
    token = await rt.questions.mint_token(gate.number, 1, "carol", people.olga)
    assert (await make.decide(gate.number, True, people.dave, token=token)).resolved
    assert (await make.answer(numbers[Status.WAITING_FOR_INPUT], "red", people.ben)).accepted
    work = await make.running(gate.number)
    await rt.checkpoints.save(work.lease, {"n": 1}, b"bundle")
    await rt.checkpoints.log(work.lease, 1, "a line")
    await rt.checkpoints.artifact(work.lease, "a", "file", b"bytes")
    claim = rt.claim(make.worker, (work.queue,))
    assert await claim.heartbeat([work.lease], draining=False)
    assert await rt.settle.outcome(work, Done()) is Status.COMPLETED
    assert (await rt.operate.retry(work.number, owner, again=True)).how == "created"
    for name in rt.sweeps.names:
        await rt.sweeps.names[name](Term())
    assert await rt.sweeps.rescue(Term(), [make.worker]) == 2
    assert sum((await rt.inspect.stats()).jobs.values()) == len(Status) + 2
    assert await rt.inspect.feed()
    assert not any((await rt.inspect.invariants()).values())
