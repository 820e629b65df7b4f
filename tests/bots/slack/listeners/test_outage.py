"""Each kind of interaction gets a message while the database is unreachable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from draftsman_bots.process.http import HttpServer, bind
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.transport import acknowledgments
from draftsman_bots.slack.transport.http_app import EVENTS_PATH, application
from draftsman_testing.slack import Fault
from tests.bots.slack.listeners.conftest import BEN, InProcessDelivery, SlackBotHarness


@pytest.fixture(params=["http", "socket"])
async def either(
    request: pytest.FixtureRequest, bench: SlackBotHarness
) -> AsyncIterator[SlackBotHarness]:
    """Provide the bot over each transport."""
    if request.param == "socket":
        yield bench
        return
    courier = bench.slack.event_delivery
    assert isinstance(courier, InProcessDelivery)
    served = bind(("127.0.0.1", 0), "slack")
    server = HttpServer(application(courier.bot, bench.slack.signing_secret, BotHealth()), served)
    serving = asyncio.create_task(server.run())
    bench.slack.request_url = f"http://127.0.0.1:{served.getsockname()[1]}{EVENTS_PATH}"
    yield bench
    await courier.close()
    server.stop.set()
    await serving


async def test_press_during_an_outage_asks_to_try_again_once(either: SlackBotHarness) -> None:
    question, _, ts = await either.shown()
    await either.rt.db.close()
    ack = await either.slack.press(BEN, either.general, ts, "blue", retries=2)
    assert not ack.acked, "Slack marks the button, and through a socket brings it again"
    assert await either.ephemeral_texts(BEN) == [acknowledgments.RETRY_LATER], (
        "once, however often it came"
    )
    await either.rt.db.open()
    assert (await either.slack.press(BEN, either.general, ts, "blue")).acked
    assert await either.answer(question) == ("blue", ("ben",))


async def test_outage_reply_falls_back_to_the_response_url(
    either: SlackBotHarness,
) -> None:
    _, _, ts = await either.shown()
    await either.rt.db.close()
    either.slack.faults.next("chat.postEphemeral", Fault.HTML_503)
    await either.slack.press(BEN, either.general, ts, "blue")
    assert await either.ephemeral_texts(BEN) == [acknowledgments.RETRY_LATER]
    either.slack.faults.random(1, {Fault.DROP_BEFORE: 1.0})
    again = await either.slack.press(BEN, either.general, ts, "blue")
    assert again.status == (503 if either.slack.request_url else None)
    await either.ctx.background.idle()
    await either.rt.db.open()
