"""The pages of the demo in a real browser, narrow and wide.

Needs Chromium (on Debian: apt-get install chromium); takes some seconds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from draftsman_testing.fake.page import Guide
from draftsman_testing.slack import FakeSlack
from draftsman_testing.slack.page.channel_page import LATE, ChannelPage
from draftsman_testing.trello import FakeTrello
from draftsman_testing.trello.page.board_page import BoardPage
from draftsman_testing.waits import until
from tests.soak.browser import Browser, Page, browsing, find_chromium
from tests.support.cases import cases

WIDTHS = (390, 1440)
LONG = "x" * 400
GUIDE = Guide("draftsman demo", ("Send the request.", f"Read {LONG}"))


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    """Provide a browser."""
    if (program := find_chromium()) is None:
        pytest.skip("there is no Chromium here")
    async with browsing(program, tmp_path / "browser") as started:
        yield started


async def opened(browser: Browser, url: str, width: int) -> Page:
    """Open a page in a window of this width."""
    page = await browser.open("about:blank")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    await page.tell("Emulation.setDeviceMetricsOverride", **size)
    await page.go(url)
    return page


async def sees(page: Page, part: str) -> None:
    """Wait until the page shows a text."""

    async def look() -> bool:
        return part in str(await page.evaluate("document.body ? document.body.innerText : ''"))

    await until(look, f"{part!r} in the browser")


async def fits(page: Page) -> bool:
    """Return whether nothing is wider than the window."""
    wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    return not await page.evaluate(wide)


@cases("width", WIDTHS)
async def test_the_page_of_slack_follows_the_channel_and_keeps_what_is_typed(
    browser: Browser, width: int
) -> None:
    async with FakeSlack() as slack:
        slack.event_delivery.patience = 0.01  # no app is there
        room = slack.channel("general", [slack.user("anna"), slack.user("ben")])
        web = AsyncWebClient(slack.bot_token, base_url=slack.api_url)
        async with ChannelPage(slack, room, GUIDE, "/draftsman help").serving() as url:
            page = await opened(browser, url, width)
            await sees(page, "Send the request.")
            typing = "document.getElementById('composer').value = 'half a word'"
            await page.evaluate(typing)
            words = {"type": "plain_text", "text": "Approve"}
            button = {"type": "button", "text": words, "action_id": "go", "value": "1"}
            blocks: list[dict[str, Any]] = [
                {"type": "section", "text": {"type": "mrkdwn", "text": f"```{LONG}```{LONG}"}},
                {"type": "actions", "elements": [button]},
            ]
            await web.chat_postMessage(channel=room, text="news", blocks=blocks)
            await sees(page, "Approve")
            assert await page.evaluate("document.getElementById('composer').value") == "half a word"
            assert await fits(page)
            await page.evaluate("document.querySelector('[name=press]').click()")
            await sees(page, LATE)
            assert page.complaints() == []


@cases("width", WIDTHS)
async def test_the_page_of_trello_shows_a_card_and_takes_a_comment(
    browser: Browser, width: int
) -> None:
    async with FakeTrello() as trello:
        anna = trello.member("Anna")
        board = trello.board("Work", [anna])
        trello.label(board, "draftsman")
        card = trello.card(board, trello.list(board, "To do"), LONG, desc=f"`{LONG}`", by=anna)
        async with BoardPage(trello, board, GUIDE).serving() as url:
            page = await opened(browser, url, width)
            await sees(page, "Add label: draftsman")
            assert await fits(page)
            write = f"document.getElementById('comment:{card}').value = 'approve'"
            await page.evaluate(write)
            await page.evaluate(f"document.getElementById('comment:{card}').form.submit()")
            await sees(page, "UTC")
            assert [item.text for item in trello.comments(card)] == ["approve"]
            assert page.complaints() == []
    await sees(page, "is not served now")
    async with (
        FakeTrello(world=trello.world) as again,
        BoardPage(again, board, GUIDE).serving() as same,
    ):
        assert same == url
        again.card(board, next(iter(again.world.lists)), "Goes on", by=anna)
        await sees(page, "Goes on")
        assert await page.evaluate("document.getElementById('ended').hidden")
