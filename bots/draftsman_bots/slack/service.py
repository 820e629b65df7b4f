"""The Slack service of one process: dispatcher, transport and delivery process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any

from draftsman.loops.lifecycle import StopSignal
from draftsman.runtime import Runtime
from draftsman.settings import SlackSettings
from draftsman_bots.http import Server, health_application, serve
from draftsman_bots.slack import listeners
from draftsman_bots.slack.context import BotContext
from draftsman_bots.slack.credentials import Credentials
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.identity import Identity, resolve_identity
from draftsman_bots.slack.listeners.messages import on_missed_reply
from draftsman_bots.slack.outbound import channel
from draftsman_bots.slack.transport.dispatcher import DEADLINE, SlackDispatcher, build
from draftsman_bots.slack.transport.http_app import application
from draftsman_bots.slack.transport.installation import Installation
from draftsman_bots.slack.transport.socket_mode import SocketModeClient
from draftsman_bots.slack.transport.web_api import WebApi
from draftsman_bots.slack.usecases.backfill import Backfill
from draftsman_bots.slack.usecases.ephemeral import notify_actor

_log = logging.getLogger(__name__)


class Service:
    """The parts of the Slack bot; when a part fails, all end."""

    def __init__(self, rt: Runtime, slack: SlackSettings, tokens: Credentials) -> None:
        self.stop = StopSignal()
        self.health = BotHealth()
        self.port: int | None = None
        """The HTTP port, once it is served."""
        self._slack = slack
        self._identity = Identity()
        timeout = rt.settings.notifications.timeout
        self._client = channel.client(tokens.bot, slack.api_url, timeout)
        self._desk = desk = BotContext(rt, slack, self._client, self._identity)
        app = build(self._client, self._identity, lambda app: listeners.register(app, desk))
        self._bot = SlackDispatcher(app, self.health)
        self._bot.tell = partial(notify_actor, desk)
        self._account = Installation(self.health)
        self._bot.signals.lost = self._account.mark_lost
        speaking = channel.SlackChannel(
            self._client, timeout=timeout, account=self._account, identity=self._identity
        )
        self._mailroom = rt.delivery_process([speaking])
        self._deliver = rt.delivery_sender
        caller = WebApi(self._client, timeout, self._account, self._identity)
        self._catchup = Backfill(rt, caller, self._identity, self.health, self._missed)
        self._bot.signals.limited = self._catchup.limited
        self.health_port: int | None = None
        """The separate port of the health endpoints, if configured."""
        self._servers: list[Server] = []
        self._sockets: SocketModeClient | None = None
        if slack.mode == "socket":
            self._sockets = SocketModeClient(self._bot, self._client, tokens.app, self.health)
            self._sockets.on_reconnect = self._catchup.schedule
        self._signing = tokens.signing

    async def run(self) -> None:
        """Serve until `end`; raises ConfigError if an address is in use."""
        account = self._account.run(self._client, self._deliver, self._mailroom.wake)
        catchup, find_out = self._catchup.run(), self._find_out()
        parts = [*self._listening(), self._mailroom.run(), account, catchup, find_out]
        tasks = [asyncio.create_task(part) for part in parts]
        for task in tasks:
            task.add_done_callback(self._part_ended)
        _log.info("bots: Slack, mode %s", self._slack.mode)
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        await self._bot.close()
        await self._desk.background.close(DEADLINE)
        if broken := [end for end in ends if isinstance(end, BaseException)]:
            raise broken[0]

    def end(self) -> None:
        """Accept nothing new and finish the work in progress."""
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
        await resolve_identity(
            self._identity, self._client, self.health, self.stop, self._slack.team
        )
        if self._identity.bot_user is not None:
            self._account.mark_restored()
            self._catchup.schedule(tells=False)

    async def _missed(self, event: dict[str, Any], tells: bool) -> None:
        await on_missed_reply(self._desk, event, self._identity.bot_user or "", tells=tells)

    def _part_ended(self, task: asyncio.Task[None]) -> None:
        """End all parts when a part failed: a bot must not receive without sending."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s failed: %s", task.get_coro(), error)
            self.end()
