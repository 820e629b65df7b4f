"""Trello bot process: poller, webhook server and delivery of comments."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from draftsman.processes.components import Component, ComponentGroup
from draftsman.runtime import Runtime
from draftsman_bots.process.http import health_application, serve
from draftsman_bots.trello.boards.poller import Poller
from draftsman_bots.trello.context import BotContext
from draftsman_bots.trello.credentials import Credentials, read
from draftsman_bots.trello.deliveries.channel import TrelloChannel
from draftsman_bots.trello.records.service import boards_of
from draftsman_bots.trello.settings import TrelloSettings
from draftsman_bots.trello.transport.client import connect
from draftsman_bots.trello.transport.http_app import application

CLOSING: Final = 5.0
"""Seconds for background tasks to finish at shutdown."""
READ_ONCE: Final = "without a webhook, later edits of comments are not seen"
_log = logging.getLogger(__name__)


class Service(ComponentGroup):
    """The components of the Trello bot."""

    def __init__(self, rt: Runtime, trello: TrelloSettings, tokens: Credentials) -> None:
        """Create the components; raises ConfigError if an address cannot be used."""
        self.port: int | None = None
        """Port of the webhook server, if it is served."""
        self.health_port: int | None = None
        """Port of the health server, if it is a separate server."""
        self._settings = trello
        self._client = connect(trello, tokens, timeout=rt.settings.notifications.timeout)
        self.context = BotContext(rt, trello, self._client)
        self.health = self.context.health
        self.health.read_problems = rt.readiness.problems
        if trello.callback_url is None:
            self.health.info("comments", READ_ONCE)
        deliveries = rt.delivery_process(
            [TrelloChannel(self._client, boards_of(rt), self.health, boards_of(rt).cards)]
        )
        self.poller = Poller(self.context, trello.poll, deliveries.sender)
        super().__init__(
            [*self._servers(tokens.secret), deliveries, self.context.downloads, self.poller]
        )

    async def run(self) -> None:
        """Run until stopped; raises ConfigError if the account cannot be used."""
        source = "webhook and polling" if self._settings.callback_url else "polling"
        _log.info("bots: Trello by %s, every %s s", source, self._settings.poll)
        try:
            await super().run()
        finally:
            await self.context.background.close(CLOSING)
            await self._client.close()

    def _servers(self, secret: str) -> Iterator[Component]:
        if (address := self._settings.address) is not None:
            server = serve(application(self.context, secret), address, "trello")
            self.port = server.port
            yield server
        if (address := self._settings.health_address) is not None:
            app = health_application(self.health)
            server = serve(app, address, "trello", "health_listen")
            self.health_port = server.port
            yield server


def create(rt: Runtime) -> Service:
    """Return the bot that is configured; raises ConfigError."""
    settings = TrelloSettings.required(rt.settings)
    return Service(rt, settings, read(settings))
