"""Trello in one process: its poller, its webhook, and the mailroom that comments on cards."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

from draftsman.loops.lifecycle import StopSignal
from draftsman.runtime import Runtime
from draftsman.settings import TrelloSettings
from draftsman_bots.http import Server, health_application, serve
from draftsman_bots.trello.context import BotContext
from draftsman_bots.trello.credentials import Credentials
from draftsman_bots.trello.identity import resolve_identity
from draftsman_bots.trello.listeners.http_app import application
from draftsman_bots.trello.listeners.poller import Poller
from draftsman_bots.trello.outbound.channel import TrelloChannel
from draftsman_bots.trello.transport.client import connect

CLOSING: Final = 5.0
"""Seconds for what was begun beside."""
READ_ONCE: Final = "comments are read once: what is changed later is not seen without a webhook"
_log = logging.getLogger(__name__)


class Service:
    """All parts of Trello; when one of them breaks, all end."""

    def __init__(self, rt: Runtime, trello: TrelloSettings, tokens: Credentials) -> None:
        self.stop = StopSignal()
        self.port: int | None = None
        """Where HTTP is served, once it is."""
        self._settings = trello
        self._secret = tokens.secret
        self._client = connect(trello, tokens, timeout=rt.settings.notifications.timeout)
        self.desk = BotContext(rt, trello, self._client)
        self.health = self.desk.health
        self._mailroom = rt.delivery_process([TrelloChannel(self._client, rt.boards, self.health)])
        self.poller = Poller(self.desk, trello.poll, self._mailroom.sender)
        self.health_port: int | None = None
        """Where health is served, if it has a port of its own."""
        self._servers: list[Server] = []

    async def run(self) -> None:
        """Serve until `end`; raises ConfigError where its address is taken, or the account."""
        parts = [*self._listening(), self._mailroom.run(), self._poll()]
        tasks = [asyncio.create_task(part) for part in parts]
        for task in tasks:
            task.add_done_callback(self._part_ended)
        how = "webhook and polling" if self._settings.callback_url else "polling"
        _log.info("bots: Trello by %s, every %s s", how, self._settings.poll)
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        await self.desk.background.close(CLOSING)
        await self._client.close()
        if broken := [end for end in ends if isinstance(end, BaseException)]:
            raise broken[0]

    def end(self) -> None:
        """Take nothing new, finish what was begun."""
        self.stop.set()
        self.poller.stop.set()
        self._mailroom.stop()
        for server in self._servers:
            server.end()

    def _listening(self) -> list[Coroutine[Any, Any, None]]:
        parts = []
        if (address := self._settings.address) is not None:
            app = application(self.desk, self._secret)
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
        """Poll once it is known who we are: what we said ourselves is no answer."""
        await resolve_identity(self.desk, self.stop)
        if self.desk.me:
            if self._settings.callback_url is None:
                self.health.info("comments", READ_ONCE)
            await self.poller.run()

    def _part_ended(self, task: asyncio.Task[None]) -> None:
        """End all when a part broke: half a bot would hear and not speak, or the reverse."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s broke: %s", task.get_coro(), error)
            self.end()
