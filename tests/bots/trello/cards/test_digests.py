"""Digests as comments on the card that a board chose."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from draftsman.jobs.runs.run import LeaderTerm
from draftsman_testing.factories import QUESTION
from draftsman_testing.trello import FakeTrello
from tests.bots.trello.inbound.conftest import TrelloBotHarness
from tests.core.rights.conftest import roles
from tests.support.clock import Clock
from tests.support.roles import Roles

__all__ = ["roles"]
LONG = QUESTION.model_copy(update={"expires_in": 3 * 86_400.0})


async def test_a_person_is_mentioned_once_in_the_digest_and_not_in_the_questions(
    bench: TrelloBotHarness, trello: FakeTrello, clock: Clock, roles: Roles
) -> None:
    await bench.rt.people.save(roles.people())
    digests = bench.card("Digests")
    await bench.watch(digest_card_id=digests)
    hour = datetime.now(UTC) + timedelta(hours=2)
    await bench.rt.digests.choose(f"{hour:%H:00}", bench.people.ben, timezone="UTC")
    cards = [bench.card(labels=[bench.label]) for _ in range(2)]
    await bench.poll()
    at = f"@{trello.username(bench.ben)}"
    for card in cards:
        await bench.ask_question(card, LONG)
        assert all(at not in comment.text for comment in trello.comments(card))
    assert trello.comments(digests) == []
    await clock.forward(3 * 3600.0)
    for _ in range(2):
        await bench.rt.digests.sweep(LeaderTerm())
        await bench.send_messages()
    (comment,) = trello.comments(digests)
    assert "Your digest: 2 questions waiting for an answer" in comment.text
    assert comment.text.count(at) == 1
    for card in cards:
        assert all(at not in comment.text for comment in trello.comments(card))
