"""Trello bot process: poller, webhook server and delivery of comments."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

from draftsman.processes.lifecycle import StopSignal
from draftsman.runtime import Runtime
from draftsman.settings.trello import TrelloSettings
from draftsman_bots.process.http import Server, health_application, serve
from draftsman_bots.trello.boards.poller import Poller
from draftsman_bots.trello.context import BotContext
from draftsman_bots.trello.credentials import Credentials
from draftsman_bots.trello.deliveries.channel import TrelloChannel
from draftsman_bots.trello.identity import resolve_identity
from draftsman_bots.trello.transport.client import connect
from draftsman_bots.trello.transport.http_app import application

CLOSING: Final = 5.0
"""Seconds for background tasks to finish at shutdown."""
READ_ONCE: Final = "without a webhook, later edits of comments are not seen"
_log = logging.getLogger(__name__)


class Service:
    """All parts of the Trello bot; if one fails, all stop."""

    def __init__(self, rt: Runtime, trello: TrelloSettings, tokens: Credentials) -> None:
        self.stop = StopSignal()
        self.port: int | None = None
        """Port of the webhook server, once it listens."""
        self._settings = trello
        self._secret = tokens.secret
        self._client = connect(trello, tokens, timeout=rt.settings.notifications.timeout)
        self.context = BotContext(rt, trello, self._client)
        self.health = self.context.health
        self._deliveries = rt.delivery_process(
            [TrelloChannel(self._client, rt.boards, self.health, rt.boards.cards)]
        )
        self.poller = Poller(self.context, trello.poll, self._deliveries.sender)
        self.health_port: int | None = None
        """Port of the health server, if it is a separate server."""
        self._servers: list[Server] = []

    async def run(self) -> None:
        """Run until `end`; raises ConfigError if an address or the account cannot be used."""
        downloads = self.context.downloads.run()
        parts = [*self._servers_to_run(), self._deliveries.run(), downloads, self._poll()]
        tasks = [asyncio.create_task(part) for part in parts]
        for task in tasks:
            task.add_done_callback(self._part_ended)
        source = "webhook and polling" if self._settings.callback_url else "polling"
        _log.info("bots: Trello by %s, every %s s", source, self._settings.poll)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await self.context.background.close(CLOSING)
        await self._client.close()
        if errors := [result for result in results if isinstance(result, BaseException)]:
            raise errors[0]

    def end(self) -> None:
        """Stop accepting work and finish running work."""
        self.stop.set()
        self.poller.stop.set()
        self._deliveries.stop()
        self.context.downloads.end()
        for server in self._servers:
            server.end()

    def _servers_to_run(self) -> list[Coroutine[Any, Any, None]]:
        parts = []
        if (address := self._settings.address) is not None:
            app = application(self.context, self._secret)
            server, serving, self.port = serve(app, address, "trello")
            self._servers.append(server)
            parts.append(serving)
        if (own := self._settings.health_address) is not None:
            app = health_application(self.health)
            server, serving, self.health_port = serve(app, own, "trello", "health_listen")
            self._servers.append(server)
            parts.append(serving)
        return parts

    async def _poll(self) -> None:
        """Poll once the bot's account is known: its own comments are not answers."""
        await resolve_identity(self.context, self.stop)
        if self.context.me:
            if self._settings.callback_url is None:
                self.health.info("comments", READ_ONCE)
            await self.poller.run()

    def _part_ended(self, task: asyncio.Task[None]) -> None:
        """Stop all parts if one failed: a bot must not receive without replying."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s failed: %s", task.get_coro(), error)
            self.end()
