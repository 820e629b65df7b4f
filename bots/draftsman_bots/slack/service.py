"""The Slack bot: dispatcher, transport and delivery process."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from typing import Any

from draftsman.deliveries.service.live_threads import LiveThreads
from draftsman.processes.components import Component, ComponentGroup, Routine
from draftsman.processes.lifecycle import StopSignal
from draftsman.runtime import Runtime
from draftsman_bots.process.http import health_application, serve
from draftsman_bots.slack import listeners
from draftsman_bots.slack.context import BotContext
from draftsman_bots.slack.credentials import Credentials, read
from draftsman_bots.slack.deliveries import channel
from draftsman_bots.slack.ephemeral import notify_actor
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.identity import Identity, resolve_identity
from draftsman_bots.slack.listeners.messages import on_missed_reply
from draftsman_bots.slack.live.loop import LiveThreadLoop
from draftsman_bots.slack.questions.backfill import Backfill
from draftsman_bots.slack.settings import SlackSettings
from draftsman_bots.slack.transport.dispatcher import DEADLINE, SlackDispatcher, build
from draftsman_bots.slack.transport.http_app import application
from draftsman_bots.slack.transport.installation import Installation
from draftsman_bots.slack.transport.socket_mode import SocketModeClient
from draftsman_bots.slack.transport.web_api import WebApi

_log = logging.getLogger(__name__)


class Service(ComponentGroup):
    """The components of the Slack bot."""

    def __init__(self, rt: Runtime, slack: SlackSettings, tokens: Credentials) -> None:
        """Create the components; raises ConfigError if an address is in use."""
        self.health = BotHealth()
        self.health.read_problems = rt.readiness.problems
        self.port: int | None = None
        """The HTTP port, if it is served."""
        self.health_port: int | None = None
        """The separate port of the health endpoints, if configured."""
        self._slack = slack
        self._identity = Identity()
        timeout = rt.settings.notifications.timeout
        self._client = channel.client(tokens.bot, slack.api_url, timeout)
        self._context = ctx = BotContext(rt, slack, self._client, self._identity)
        app = build(self._client, self._identity, lambda app: listeners.register(app, ctx))
        self._bot = SlackDispatcher(app, listeners.events(ctx), self.health)
        self._bot.send_text = partial(notify_actor, ctx)
        self._installation = Installation(self.health, self._client, rt.delivery_sender)
        self._bot.signals.on_lost = self._installation.mark_lost
        slack_channel = channel.SlackChannel(
            self._client,
            timeout=timeout,
            account=self._installation,
            identity=self._identity,
            reaction_approvals=slack.reaction_approvals,
        )
        deliveries = rt.delivery_process([slack_channel])
        self._installation.on_resume = deliveries.wake
        live_threads = LiveThreadLoop(
            LiveThreads(rt.db, rt.policy, "slack"),
            self._client,
            self._identity,
            self.health,
            timeout=timeout,
            streams=slack.progress == "stream",
        )
        web_api = WebApi(self._client, timeout, self._installation, self._identity)
        self._backfill = Backfill(rt, web_api, self._identity, self.health, self._on_missed_reply)
        self._bot.signals.on_rate_limit = self._backfill.on_rate_limit
        super().__init__(
            [
                *self._transports(tokens),
                deliveries,
                live_threads,
                ctx.downloads,
                self._installation,
                self._backfill,
                Routine(self._resolve_identity),
            ]
        )

    async def run(self) -> None:
        """Serve until stopped."""
        _log.info("bots: Slack, mode %s", self._slack.mode)
        try:
            await super().run()
        finally:
            await self._bot.close()
            await self._context.background.close(DEADLINE)

    def _transports(self, tokens: Credentials) -> Iterator[Component]:
        """Yield the servers, and the client of Socket Mode."""
        health_address = self._slack.health_address
        if (address := self._slack.address) is not None:
            bot = self._bot if self._slack.mode == "http" else None
            app = application(bot, tokens.signing, self.health, details=health_address is None)
            server = serve(app, address, "slack")
            self.port = server.port
            yield server
        if health_address is not None:
            app = health_application(self.health)
            server = serve(app, health_address, "slack", "health_listen")
            self.health_port = server.port
            yield server
        if self._slack.mode == "socket":
            sockets = SocketModeClient(self._bot, self._client, tokens.app, self.health)
            sockets.on_reconnect = self._backfill.schedule
            yield sockets

    async def _resolve_identity(self, stop: StopSignal) -> None:
        await resolve_identity(self._identity, self._client, self.health, stop, self._slack.team)
        if self._identity.bot_user is not None:
            self._installation.mark_restored()
            self._backfill.schedule(notify=False)

    async def _on_missed_reply(self, event: dict[str, Any], notify: bool) -> None:
        await on_missed_reply(self._context, event, self._identity.bot_user or "", notify=notify)


def create(rt: Runtime) -> Service:
    """Return the bot that is configured; raises ConfigError."""
    settings = SlackSettings.required(rt.settings)
    return Service(rt, settings, read(settings))
