"""Replies to edits of a card or comment after its job was created."""

from __future__ import annotations

import pytest

from draftsman_testing.trello import FakeTrello
from tests.bots.trello.inbound.conftest import TrelloBotHarness

UNSEEN = "which was created from the earlier text"


@pytest.mark.parametrize("way", ["poll", "webhook"])
async def test_edited_card_gets_one_notice_without_effect(
    bench: TrelloBotHarness, trello: FakeTrello, way: str
) -> None:
    if way == "webhook":
        await bench.serve_webhook()
    see = bench.poll if way == "poll" else bench.deliver_webhooks
    card = bench.card(desc="Fix it")
    trello.describe(card, "Fix it well")
    trello.add_label(card, bench.label)
    await see()
    await see()
    assert await bench.notices(card) == [], "it was read after that edit"
    [job] = await bench.jobs()
    trello.describe(card, "Fix it today")
    trello.rename(card, "Fix the parser today")
    await see()
    [notice] = await bench.notices(card)
    assert f"{job.name}, {UNSEEN}" in notice
    assert f"{job.name}: {job.name}" not in notice
    assert (await bench.jobs())[0].agent_request.text == job.agent_request.text
    await bench.rt.job_control.cancel(job.number, bench.people.olga, "enough")
    trello.describe(card, "Fix it tomorrow")
    await see()
    assert len(await bench.notices(card)) == 1


async def test_edited_request_comment_gets_a_notice_and_conversation_does_not(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.serve_webhook()
    card = bench.card()
    asked = trello.comment(card, bench.anna, "with tests")
    trello.add_label(card, bench.label)
    await bench.deliver_webhooks()
    later = trello.comment(card, bench.anna, "thanks")
    trello.edit_comment(later, "thank you")
    await bench.deliver_webhooks()
    assert await bench.notices(card) == []
    trello.edit_comment(asked, "without tests")
    await bench.deliver_webhooks(copies=2)
    [notice] = await bench.notices(card)
    assert UNSEEN in notice
