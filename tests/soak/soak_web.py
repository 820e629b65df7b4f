"""The page of `dashboard --web` in a real browser, controlled with DevTools.

Needs Chromium (on Debian: apt-get install chromium); takes some seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pyte
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.soak.browser import Browser, Page, browsing, find_chromium
from tests.tui.cli.browser_tabs import dashboards, origin_of, served, socket_of
from tests.tui.cli.cli_runner import DEADLINE, Cli
from tests.tui.cli.conftest import as_ as as_
from tests.tui.cli.conftest import cli as cli
from tests.tui.cli.conftest import config as config
from tests.tui.cli.conftest import me as me

KNOCK = """new Promise((done) => {
  const socket = new WebSocket(%r);
  socket.onopen = () => { socket.close(); done("open"); };
  socket.onerror = () => done("refused");
})"""


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    """Provide a browser."""
    if (program := find_chromium()) is None:
        pytest.skip("there is no Chromium here")
    async with browsing(program, tmp_path / "browser") as started:
        yield started


def drawn(page: Page) -> list[str]:
    """Return the lines of the terminal, as its dashboard has drawn them."""
    screen = pyte.Screen(*page.cells())
    pyte.ByteStream(screen).feed(page.received())
    return [line.rstrip() for line in screen.display]


async def see(page: Page, *text: str) -> None:
    """Wait until the lines are received and painted, with pixels only where there is text."""

    async def is_painted() -> bool:
        lines = drawn(page)
        if not all(word in "\n".join(lines) for word in text):
            return False
        return await page.inked(len(lines)) == [bool(line) for line in lines]

    try:
        await until(is_painted, f"{text}")
    except AssertionError as error:
        raise AssertionError("\n".join([str(error), *drawn(page)])) from None


async def test_a_question_is_answered_in_the_browser(
    browser: Browser, cli: Cli, make: Factory, rt: Runtime
) -> None:
    number = (await make.asked()).number
    async with served(cli.config) as address:
        page = await browser.open(address)
        await see(page, f"D-{number}", "asks", "q quit")
        await page.press("2")
        await see(page, f"D-{number}/1", "inbox · 1")
        await page.press("a")
        await see(page, "1  ")
        await page.press("1")
        await see(page, "inbox · 0", "No open questions")
        assert await rt.questions.open() == []
        assert (await rt.read_model.job(number)).status is Status.RESUMED

        assert all(requested.startswith(origin_of(address)) for requested in page.requested())
        assert page.complaints() == []
        (process,) = dashboards()
        await browser.close(page)
        await asyncio.to_thread(process.wait, DEADLINE)


async def test_end_of_a_dashboard_is_displayed_and_enter_restarts_it(
    browser: Browser, cli: Cli
) -> None:
    async with served(cli.config) as address:
        page = await browser.open(address)
        await see(page, "No jobs yet")
        (process,) = dashboards()
        await page.press("q")

        async def has_message() -> bool:
            return bool(await page.evaluate("document.body.matches('.-closed')"))

        await until(has_message, "the message about its end")
        await asyncio.to_thread(process.wait, DEADLINE)
        page.events.clear()
        await page.press("\r")
        await see(page, "No jobs yet")


async def test_page_of_another_origin_is_rejected(browser: Browser, cli: Cli) -> None:
    async def elsewhere(_: web.Request) -> web.Response:
        return web.Response(text="<p>Win a prize</p>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/", elsewhere)
    async with served(cli.config) as address, TestServer(app) as other:
        script = KNOCK % socket_of(address)
        page = await browser.open(str(other.make_url("/")))
        assert await page.evaluate(script) == "refused"
        assert dashboards() == []
        own_page = await browser.open(address)
        await see(own_page, "No jobs yet")
        assert await own_page.evaluate(script) == "open"
