"""Connection of a Bolt app to the fake, with Bolt's own adapters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from draftsman_testing.slack.server import FakeSlack


def bolt_app(slack: FakeSlack) -> AsyncApp:
    """Return an app that acknowledges after its listener has ended."""
    client = AsyncWebClient(slack.bot_token, base_url=slack.api_url, retry_handlers=[])
    return AsyncApp(
        name="test",
        client=client,
        signing_secret=slack.signing_secret,
        process_before_response=True,
    )


@asynccontextmanager
async def by_socket(
    app: AsyncApp, slack: FakeSlack, ping: float = 10.0
) -> AsyncIterator[AsyncSocketModeHandler]:
    """Connect; `ping` is the SDK's check interval in seconds."""
    handler = AsyncSocketModeHandler(app, slack.app_token, ping_interval=ping)
    before = slack.sockets.count
    await handler.connect_async()  # type: ignore[no-untyped-call]
    try:
        await slack.sockets.wait(before + 1)
        yield handler
    finally:
        await handler.close_async()  # type: ignore[no-untyped-call]


@asynccontextmanager
async def by_http(app: AsyncApp, slack: FakeSlack) -> AsyncIterator[str]:
    """Serve the app and set it as the request_url."""
    runner = web.AppRunner(app.web_app("/slack/events"))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    slack.request_url = f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
    try:
        yield slack.request_url
    finally:
        slack.request_url = None
        await runner.cleanup()
