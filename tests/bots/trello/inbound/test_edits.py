"""Replies to edits of a card or comment after its job was created."""

from __future__ import annotations

import pytest

from tests.bots.trello.inbound.conftest import TrelloBotHarness
from tests.support.trello import FakeTrello

UNSEEN = "which was created from the earlier text"


@pytest.mark.parametrize("way", ["poll", "webhook"])
async def test_an_edited_card_is_told_once_that_nothing_changes(
    bench: TrelloBotHarness, trello: FakeTrello, way: str
) -> None:
    if way == "webhook":
        await bench.listen()
    see = bench.poll if way == "poll" else bench.hear
    card = bench.card(desc="Fix it")
    trello.describe(card, "Fix it well")
    trello.add_label(card, bench.label)
    await see()
    await see()
    assert await bench.told(card) == [], "it was read after that edit"
    [job] = await bench.jobs()
    trello.describe(card, "Fix it today")
    trello.rename(card, "Fix the parser today")
    await see()
    [said] = await bench.told(card)
    assert f"{job.name}, {UNSEEN}" in said
    assert f"{job.name}: {job.name}" not in said
    assert (await bench.jobs())[0].ticket_text == job.ticket_text
    await bench.rt.job_control.cancel(job.number, bench.people.olga, "enough")
    trello.describe(card, "Fix it tomorrow")
    await see()
    assert len(await bench.told(card)) == 1


async def test_an_edited_comment_of_the_request_is_told_and_talk_is_not(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.listen()
    card = bench.card()
    asked = trello.comment(card, bench.anna, "with tests")
    trello.add_label(card, bench.label)
    await bench.hear()
    later = trello.comment(card, bench.anna, "thanks")
    trello.edit_comment(later, "thank you")
    await bench.hear()
    assert await bench.told(card) == []
    trello.edit_comment(asked, "without tests")
    await bench.hear(copies=2)
    [said] = await bench.told(card)
    assert UNSEEN in said
