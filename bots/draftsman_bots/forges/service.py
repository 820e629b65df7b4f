"""The process part that receives the events of forges."""

from __future__ import annotations

import contextlib
import logging
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from draftsman.errors import DraftsmanError, UsageError
from draftsman.forges.webhooks import Webhooks
from draftsman.ids import new_id
from draftsman.processes.components import Component, ComponentGroup, Routine
from draftsman.processes.lifecycle import OutageGuard, StopSignal
from draftsman_bots.forges.deliveries.channel import ForgeChannel
from draftsman_bots.forges.people import PeopleEventProcessor
from draftsman_bots.forges.receiver import ForgeReceiver
from draftsman_bots.process import http
from draftsman_bots.process.credentials import read_credential, read_optional
from draftsman_bots.process.http import serve, serve_health

if TYPE_CHECKING:
    from collections.abc import Mapping

    from draftsman.runtime import Runtime
    from draftsman.settings.forges import ForgeSettings


# The endpoint of webhooks: `POST /forges/NAME`.
#
# An event is acknowledged once it is stored. Forges repeat a delivery without a 2xx, by themselves
# (GitLab) or by hand (GitHub, Gitea), and each repetition has no further effect.


BODY: Final = 5.0
"""Seconds to receive a request body."""
_log = logging.getLogger(__name__)


def application(receiver: ForgeReceiver, forges: Mapping[str, Webhooks]) -> Starlette:
    """Return the ASGI application of the forges whose webhooks are given.

    Of the health endpoints it has `/healthz` only.
    """

    async def receive(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in forges:
            return PlainTextResponse("no such forge\n", status_code=404)
        return await _receive(receiver, name, forges[name], request)

    routes = http.health_routes(receiver.health, alone=False)
    routes.append(Route("/forges/{name}", receive, methods=["POST"]))
    return Starlette(routes=routes)


async def _receive(
    receiver: ForgeReceiver, name: str, webhooks: Webhooks, request: Request
) -> Response:
    try:
        raw = await http.read_body(request, BODY)
    except http.BodyRejected as error:
        return _reject(receiver, error.status, error.reason, str(error))
    headers = dict(request.headers)
    project = webhooks.claimed_project(raw)
    if not webhooks.is_genuine(project, headers, raw):
        key = "webhook_secrets" if project in webhooks.secrets else "webhook_secret"
        text = f"the signature is wrong: is [forges.{name}] {key} that of the webhook?"
        return _reject(receiver, 401, "signature", text)
    notification = webhooks.content(headers, raw)
    if notification is None:
        return _reject(receiver, 400, "json", "the body is not JSON: set content type JSON")
    try:
        new = await receiver.receive(name, "webhook", notification.events)
    except UsageError as error:  # it would be refused again
        _log.warning("a webhook of %s is refused: %s", name, error)
        return PlainTextResponse(f"refused: {error}\n", status_code=400)
    except DraftsmanError as error:
        _log.warning("a webhook of %s was not stored: %s", name, error)
        return PlainTextResponse("not stored; deliver it again\n", status_code=503)
    if notification.changed and notification.project:
        receiver.changed(name, notification.project)
    return PlainTextResponse(f"{new} new\n")


def _reject(receiver: ForgeReceiver, status: int, reason: str, text: str) -> Response:
    receiver.health.count_rejected(reason, text)
    return PlainTextResponse(f"{text}\n", status_code=status)


LEASE: Final = 30.0
"""Seconds of the lease of polls, which each round renews."""
TICK: Final = 1.0
"""Seconds between two rounds."""


class ForgeService(ComponentGroup):
    """Webhook servers and the reader of the forges."""

    def __init__(self, rt: Runtime) -> None:
        """Create the components; raises ConfigError if an address cannot be used."""
        self.receiver = ForgeReceiver(rt)
        self.receiver.health.read_problems = rt.readiness.problems
        self._people = PeopleEventProcessor(rt, self.receiver.health, self.receiver.own_login)
        self._deliveries = rt.delivery_process([ForgeChannel(rt.settings)])
        self.ports: dict[str, int] = {}
        """Port of the webhook server of each forge."""
        self.health_port: int | None = None
        """Port of the server of the health endpoints; None without `health_listen`."""
        self._rt = rt
        self._owner = new_id()
        self._term: int | None = None
        self._webhooks = {
            name: _webhooks(f"forges.{name}", forge)
            for name, forge in rt.settings.read_forges.items()
            if forge.events == "webhook"
        }
        self.servers = list(self._bind_servers())
        super().__init__([*self.servers, Routine(self._read), self._deliveries])

    async def run(self) -> None:
        """Run until stopped."""
        for name, table in self._rt.settings.forges.items():
            if not table.usable:
                _log.error("bots: forge %s is not read: see draftsman doctor", name)
        forges = self._rt.settings.read_forges.items()
        sources = ", ".join(f"{name} by {forge.events}" for name, forge in forges)
        _log.info("bots: events of forges: %s", sources)
        await super().run()

    def _bind_servers(self) -> Iterator[Component]:
        """Yield a server for each address, with the forges that share it, and health servers."""
        forges = self._rt.settings.read_forges
        by_address: dict[tuple[str, int], list[str]] = defaultdict(list)
        for name, forge in forges.items():
            if name in self._webhooks and forge.address is not None:
                by_address[forge.address].append(name)
        for address, names in by_address.items():
            app = application(self.receiver, {name: self._webhooks[name] for name in names})
            server = serve(app, address, f"forges.{names[0]}")
            self.ports |= dict.fromkeys(names, server.port)
            yield server
        addresses = {f"forges.{name}": forge.health_address for name, forge in forges.items()}
        for server in serve_health(self.receiver.health, addresses):
            self.health_port = server.port
            yield server

    async def _read(self, stop: StopSignal) -> None:
        """Read forges until stopped; polls need the lease, which a single process has."""
        await OutageGuard("the reader of forges").repeat(self._round, TICK, stop)
        if self._term is not None:
            with contextlib.suppress(DraftsmanError):
                await self._rt.forge_events.resign(self._owner, self._term)

    async def _round(self) -> None:
        events = self._rt.forge_events
        lock = self._deliveries.sender()
        if self._term is not None and not await events.renew(self._owner, self._term, LEASE, lock):
            self._term = None
        if self._term is None:
            self._term = await events.acquire(self._owner, LEASE, lock)
        await self.receiver.read_due(polls=self._term is not None)
        if self._term is not None:
            await self._people.process()


def _webhooks(section: str, forge: ForgeSettings) -> Webhooks:
    """Return a forge's webhooks; raises ConfigError for a missing secret."""
    return Webhooks.of(
        forge,
        read_optional(section, "webhook_secret", forge.webhook_secret),
        {
            project: read_credential(section, f"webhook_secrets.{project}", source)
            for project, source in forge.webhook_secrets.items()
        },
    )
