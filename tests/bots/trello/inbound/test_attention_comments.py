"""Comments that acknowledge, snooze and delegate a question of the card."""

from __future__ import annotations

from draftsman_testing.factories import QUESTION
from draftsman_testing.trello import FakeTrello
from tests.bots.trello.inbound.conftest import TrelloBotHarness


async def test_comments_delay_the_reminders_of_a_question(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.serve_webhook()
    card = bench.card()
    question = await bench.ask_question(card)
    trello.comment(card, bench.ben, "/ack 2h")
    trello.comment(card, bench.ben, f"/snooze {question.name} 3h")
    trello.comment(card, bench.ben, "/delegate anna")
    trello.comment(card, bench.ben, "/delegate")
    trello.comment(card, bench.mallory, "/ack")
    edited = trello.comment(card, bench.ben, "thinking")
    await bench.deliver_webhooks()
    trello.edit_comment(edited, "/snooze 1h")
    await bench.deliver_webhooks()
    texts = "\n".join(await bench.notices(card))
    for part in (
        f"{question.name} acknowledged until ",
        f"{question.name} snoozed until ",
        "anna may not answer",
        "a person is required: delegate to PERSON",
        f"An edit is not executed. Write another comment: /snooze {question.name} …",
    ):
        assert part in texts, texts
    delays = await bench.rt.acknowledgments.delays(question.job, 1)
    assert [(delay.person, delay.acknowledged) for delay in delays] == [
        ("ben", True),
        ("ben", False),
    ]


async def test_a_comment_names_one_of_several_questions(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    first, second = [await bench.ask_question(card, QUESTION) for _ in range(2)]
    trello.comment(card, bench.ben, "/ack")
    trello.comment(card, bench.ben, f"/ack {second.name}")
    await bench.poll()
    assert await bench.rt.acknowledgments.delays(first.job, 1) == []
    (delay,) = await bench.rt.acknowledgments.delays(second.job, 1)
    assert delay.person == "ben"
