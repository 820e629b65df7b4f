"""People get no question about a repository that they may not see."""

from __future__ import annotations

from dataclasses import replace

import pytest

from draftsman.deliveries.service.message_reader import read_message
from draftsman.people import visibility
from draftsman.people.actor import Actor
from draftsman.people.policy import Person
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.outbox import deliveries_of


async def recipients(rt: Runtime, job: int) -> set[str]:
    """Return the people whom the message of a question asks."""
    (item,) = await rt.delivery_sender.claim("log", free=1, share=1, busy=[])
    (asked,) = [item for item in await deliveries_of(rt, job) if item.kind == "question"]
    claimed = replace(item, seq=asked.seq, job=job, question=1, kind=asked.kind)
    read = await read_message(rt.db, rt.policy, claimed)
    return {person.name for person in read.message.recipients}


async def test_a_question_asks_only_people_who_may_see_its_repository(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = await make.asked(GATE, notify=["log"], repo="secret")

    def may_see(viewer: Actor | Person | None, repo: str | None) -> bool:
        assert isinstance(viewer, Person)
        return not (viewer.name == "carol" and repo == "secret")

    monkeypatch.setattr(visibility, "may_see", may_see)
    assert await recipients(rt, work.number) == {"dave"}
