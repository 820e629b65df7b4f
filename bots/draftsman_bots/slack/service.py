"""Slack in one process: the bot behind its sockets or its HTTP, and the mailroom that sends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any

from draftsman.loops.loop import Stop
from draftsman.runtime import Runtime
from draftsman.settings import SlackSettings
from draftsman_bots.http import Server, health_application, serve
from draftsman_bots.slack import channel, listeners
from draftsman_bots.slack.account import Account
from draftsman_bots.slack.bot import DEADLINE, Bot, build
from draftsman_bots.slack.calls import Caller
from draftsman_bots.slack.catchup import CatchUp
from draftsman_bots.slack.health import Health
from draftsman_bots.slack.identity import Identity, find_out
from draftsman_bots.slack.listeners.desk import Desk
from draftsman_bots.slack.listeners.messages import missed
from draftsman_bots.slack.listeners.whisper import tell
from draftsman_bots.slack.sockets import Sockets
from draftsman_bots.slack.tokens import Tokens
from draftsman_bots.slack.web import application

_log = logging.getLogger(__name__)


class Service:
    """All parts of Slack; when one of them breaks, all end."""

    def __init__(self, rt: Runtime, slack: SlackSettings, tokens: Tokens) -> None:
        self.stop = Stop()
        self.health = Health()
        self.port: int | None = None
        """Where HTTP is served, once it is."""
        self._slack = slack
        self._identity = Identity()
        timeout = rt.settings.notifications.timeout
        self._client = channel.client(tokens.bot, slack.api_url, timeout)
        self._desk = desk = Desk(rt, slack, self._client, self._identity)
        app = build(self._client, self._identity, lambda app: listeners.register(app, desk))
        self._bot = Bot(app, self.health)
        self._bot.tell = partial(tell, desk)
        self._account = Account(self.health)
        self._bot.signals.lost = self._account.lose
        speaking = channel.SlackChannel(
            self._client, timeout=timeout, account=self._account, identity=self._identity
        )
        self._mailroom = rt.mailroom([speaking])
        self._deliver = rt.deliver
        caller = Caller(self._client, timeout, self._account, self._identity)
        self._catchup = CatchUp(rt, caller, self._identity, self.health, self._missed)
        self._bot.signals.limited = self._catchup.limited
        self.health_port: int | None = None
        """Where health is served, if it has a port of its own."""
        self._servers: list[Server] = []
        self._sockets: Sockets | None = None
        if slack.mode == "socket":
            self._sockets = Sockets(self._bot, self._client, tokens.app, self.health)
            self._sockets.back = self._catchup.want
        self._signing = tokens.signing

    async def run(self) -> None:
        """Serve until `end`; raises ConfigError where its address is taken."""
        account = self._account.run(self._client, self._deliver, self._mailroom.wake)
        catchup, find_out = self._catchup.run(), self._find_out()
        parts = [*self._listening(), self._mailroom.run(), account, catchup, find_out]
        tasks = [asyncio.create_task(part) for part in parts]
        for task in tasks:
            task.add_done_callback(self._part_ended)
        _log.info("bots: Slack by %s", self._slack.mode)
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        await self._bot.close()
        await self._desk.aside.close(DEADLINE)
        if broken := [end for end in ends if isinstance(end, BaseException)]:
            raise broken[0]

    def end(self) -> None:
        """Take nothing new, finish what was begun."""
        self.stop.set()
        self._mailroom.stop()
        self._account.end()
        self._catchup.end()
        if self._sockets is not None:
            self._sockets.stop.set()
        for server in self._servers:
            server.end()

    def _listening(self) -> list[Coroutine[Any, Any, None]]:
        parts: list[Coroutine[Any, Any, None]] = []
        own = self._slack.health_address
        if (address := self._slack.address) is not None:
            bot = self._bot if self._slack.mode == "http" else None
            app = application(bot, self._signing, self.health, details=own is None)
            server, serving, self.port = serve(app, address, "slack")
            self._servers.append(server)
            parts.append(serving)
        if own is not None:
            app = health_application(self.health)
            server, serving, self.health_port = serve(app, own, "slack", "health_listen")
            self._servers.append(server)
            parts.append(serving)
        if self._sockets is not None:
            parts.append(self._sockets.run())
        return parts

    async def _find_out(self) -> None:
        await find_out(self._identity, self._client, self.health, self.stop, self._slack.team)
        if self._identity.bot_user is not None:
            self._account.found()
            self._catchup.want(tells=False)

    async def _missed(self, event: dict[str, Any], tells: bool) -> None:
        await missed(self._desk, event, self._identity.bot_user or "", tells=tells)

    def _part_ended(self, task: asyncio.Task[None]) -> None:
        """End all when a part broke: half a bot would answer and not send, or the reverse."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s broke: %s", task.get_coro(), error)
            self.end()
