"""A question overtakes status cards in a channel with a limit of one message a second."""

from __future__ import annotations

from draftsman.deliveries.delivery import DeliveryKind, DeliveryStatus
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.outbox import deliveries_of, running
from draftsman_testing.slack import FakeSlack
from draftsman_testing.waits import until
from tests.bots.slack.channel_fixtures import slack_channel

CARDS = 12
SHOWN = 2
"""Cards that are posted before the question is asked."""
BETWEEN = 3
"""Most cards that are posted between the question's creation and its message."""


async def test_question_is_sent_before_waiting_status_messages(make: Factory, rt: Runtime) -> None:
    async with FakeSlack() as slack:
        slack.api.pace = 1.0
        room = slack.channel("ops", [slack.user("anna", id="U-ANNA")])
        notify = (f"slack:{room}",)
        for _ in range(CARDS):
            await make.queued(notify=notify)
        dispatcher = rt.dispatcher([slack_channel(slack)])
        async with running(dispatcher):
            await slack.until(lambda: len(slack.messages(room)) >= SHOWN, "the first cards")
            asked = (await make.asked(notify=notify)).number
            before = len(slack.messages(room))
            dispatcher.wake()

            async def shown() -> bool:
                kinds = {
                    delivery.kind: delivery.status for delivery in await deliveries_of(rt, asked)
                }
                return kinds[DeliveryKind.QUESTION] is DeliveryStatus.SENT

            await until(shown, "the question")
            passed = len(slack.messages(room)) - before - 1
    assert passed <= BETWEEN
    assert before + passed < CARDS, "no card was left to be passed"
