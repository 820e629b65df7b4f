"""Who records events of pagers, and acknowledges by them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from draftsman.errors import Refused
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_bots.pagers.records.pager_event import PagerEvent
from draftsman_bots.pagers.records.service import PagerEvents
from draftsman_testing.factories import GATE, Factory
from tests.core.rights.conftest import As, as_role, known, roles

__all__ = ["as_role", "known", "roles"]


async def test_only_bots_record_the_events_of_pagers(
    as_role: As, known: Runtime, make: Factory
) -> None:
    number = (await make.asked(GATE)).number
    id = (await known.read_model.job(number)).id
    event = PagerEvent("ops", "e1", id, 1, "acknowledged", datetime.now(UTC))
    for name in ("carol", "worker"):
        rt = await as_role(name)
        with pytest.raises(Refused, match="permission denied"):
            await PagerEvents(rt.db, rt.acknowledgments).record(event, None)
    bot = await as_role("bot")
    events = PagerEvents(bot.db, bot.acknowledgments)
    assert await events.record(event, None) == "recorded"
    forged = Actor(Source.CLI, "carol", "Carol", person="carol", roles=frozenset({"approver"}))
    other = replace(event, id="e2")
    with pytest.raises(Refused, match="may not delay"):
        await events.record(other, forged)
    repeated = await events.record(event, None)
    assert repeated.startswith("ignored: known")
