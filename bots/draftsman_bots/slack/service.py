"""The Slack service of a process: dispatcher, transport and delivery process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any

from draftsman.deliveries.service.live_threads import LiveThreads
from draftsman.processes.lifecycle import StopSignal
from draftsman.runtime import Runtime
from draftsman.settings.slack import SlackSettings
from draftsman_bots.process.http import Server, health_application, serve
from draftsman_bots.slack import listeners
from draftsman_bots.slack.context import BotContext
from draftsman_bots.slack.credentials import Credentials
from draftsman_bots.slack.deliveries import channel
from draftsman_bots.slack.ephemeral import notify_actor
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.identity import Identity, resolve_identity
from draftsman_bots.slack.listeners.messages import on_missed_reply
from draftsman_bots.slack.live.loop import LiveThreadLoop
from draftsman_bots.slack.questions.backfill import Backfill
from draftsman_bots.slack.transport.dispatcher import DEADLINE, SlackDispatcher, build
from draftsman_bots.slack.transport.http_app import application
from draftsman_bots.slack.transport.installation import Installation
from draftsman_bots.slack.transport.socket_mode import SocketModeClient
from draftsman_bots.slack.transport.web_api import WebApi

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
        self._context = ctx = BotContext(rt, slack, self._client, self._identity)
        app = build(self._client, self._identity, lambda app: listeners.register(app, ctx))
        self._bot = SlackDispatcher(app, listeners.events(ctx), self.health)
        self._bot.send_text = partial(notify_actor, ctx)
        self._installation = Installation(self.health)
        self._bot.signals.on_lost = self._installation.mark_lost
        slack_channel = channel.SlackChannel(
            self._client,
            timeout=timeout,
            account=self._installation,
            identity=self._identity,
            reaction_approvals=slack.reaction_approvals,
        )
        self._delivery_process = rt.delivery_process([slack_channel])
        self._delivery_sender = rt.delivery_sender
        self._live_threads = LiveThreadLoop(
            LiveThreads(rt.db, rt.policy),
            self._client,
            self._identity,
            self.health,
            timeout=timeout,
            streams=slack.progress == "stream",
        )
        web_api = WebApi(self._client, timeout, self._installation, self._identity)
        self._backfill = Backfill(rt, web_api, self._identity, self.health, self._on_missed_reply)
        self._bot.signals.on_rate_limit = self._backfill.on_rate_limit
        self.health_port: int | None = None
        """The separate port of the health endpoints, if configured."""
        self._servers: list[Server] = []
        self._sockets: SocketModeClient | None = None
        if slack.mode == "socket":
            self._sockets = SocketModeClient(self._bot, self._client, tokens.app, self.health)
            self._sockets.on_reconnect = self._backfill.schedule
        self._signing = tokens.signing

    async def run(self) -> None:
        """Serve until `end`; raises ConfigError if an address is in use."""
        installation = self._installation.run(
            self._client, self._delivery_sender, self._delivery_process.wake
        )
        backfill = self._backfill.run()
        identity = self._resolve_identity()
        parts = [
            *self._transports(),
            self._delivery_process.run(),
            self._live_threads.run(),
            self._context.downloads.run(),
            installation,
            backfill,
            identity,
        ]
        tasks = [asyncio.create_task(part) for part in parts]
        for task in tasks:
            task.add_done_callback(self._part_ended)
        _log.info("bots: Slack, mode %s", self._slack.mode)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await self._bot.close()
        await self._context.background.close(DEADLINE)
        if errors := [result for result in results if isinstance(result, BaseException)]:
            raise errors[0]

    def end(self) -> None:
        """Accept nothing new and finish the work in progress."""
        self.stop.set()
        self._delivery_process.stop()
        self._live_threads.stop.set()
        self._context.downloads.end()
        self._installation.end()
        self._backfill.end()
        if self._sockets is not None:
            self._sockets.stop.set()
        for server in self._servers:
            server.end()

    def _transports(self) -> list[Coroutine[Any, Any, None]]:
        parts: list[Coroutine[Any, Any, None]] = []
        health_address = self._slack.health_address
        if (address := self._slack.address) is not None:
            bot = self._bot if self._slack.mode == "http" else None
            app = application(bot, self._signing, self.health, details=health_address is None)
            server, serving, self.port = serve(app, address, "slack")
            self._servers.append(server)
            parts.append(serving)
        if health_address is not None:
            app = health_application(self.health)
            server, serving, self.health_port = serve(app, health_address, "slack", "health_listen")
            self._servers.append(server)
            parts.append(serving)
        if self._sockets is not None:
            parts.append(self._sockets.run())
        return parts

    async def _resolve_identity(self) -> None:
        await resolve_identity(
            self._identity, self._client, self.health, self.stop, self._slack.team
        )
        if self._identity.bot_user is not None:
            self._installation.mark_restored()
            self._backfill.schedule(notify=False)

    async def _on_missed_reply(self, event: dict[str, Any], notify: bool) -> None:
        await on_missed_reply(self._context, event, self._identity.bot_user or "", notify=notify)

    def _part_ended(self, task: asyncio.Task[None]) -> None:
        """End all parts when a part failed: a bot must not receive without sending."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s failed: %s", task.get_coro(), error)
            self.end()
