"""Links to the web inbox: ephemeral, once, and only with a public address."""

from __future__ import annotations

import re

from draftsman.people.service.browser_sessions import BrowserSessions
from draftsman_bots.slack.people.web_link import COMMAND_ONLY, NO_URL
from draftsman_bots.web.settings import WebSettings
from tests.bots.slack.listeners.conftest import ANNA, MALLORY, SlackBotHarness


def publish(bench: SlackBotHarness, url: str | None) -> None:
    """Configure the address of the web inbox."""
    web = WebSettings.model_validate({"url": url})
    settings = bench.rt.settings.model_copy(update={"web": web})
    object.__setattr__(bench.rt, "settings", settings)


async def test_a_command_replies_with_a_link_that_works_once(bench: SlackBotHarness) -> None:
    publish(bench, "https://inbox.example.org")
    ack = await bench.slack.command(ANNA, bench.general, "web")
    assert ack.body["response_type"] == "ephemeral"
    found = re.search(r"<https://inbox\.example\.org/sign-in/([\w-]+)\|", ack.body["text"])
    assert found is not None, ack.body["text"]
    sessions = BrowserSessions(bench.rt.db, bench.rt.policy)
    assert await sessions.person_of_link(found[1]) == "anna"
    assert await sessions.use_link(found[1], "a browser", 600)
    assert await sessions.use_link(found[1], "a browser", 600) is None
    assert found[1] not in str(bench.slack.messages(bench.general))


async def test_there_is_no_link_without_a_public_address_or_for_others(
    bench: SlackBotHarness,
) -> None:
    for url in (None, "http://localhost:8421"):
        publish(bench, url)
        ack = await bench.slack.command(ANNA, bench.general, "web")
        assert ack.body["text"] == NO_URL
    publish(bench, "https://inbox.example.org")
    ack = await bench.slack.command(MALLORY, bench.general, "web")
    assert "is not linked to a person" in ack.body["text"]
    await bench.slack.mention(ANNA, bench.general, "web", copies=2)
    texts = await bench.ephemeral_texts(ANNA)
    assert texts[2:] == [COMMAND_ONLY.format("/draftsman")]
