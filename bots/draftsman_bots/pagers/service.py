"""The process part that receives the webhooks of pagers."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from draftsman.errors import DatabaseUnreachable, DraftsmanError
from draftsman.formats.received_json import read_object
from draftsman.people.actor import Actor
from draftsman.processes.components import Component, ComponentGroup
from draftsman_bots.pagers import webhook
from draftsman_bots.pagers.records.service import PagerEvents
from draftsman_bots.pagers.settings import PagerSettings, webhook_pagers
from draftsman_bots.process import http
from draftsman_bots.process.credentials import read_credential
from draftsman_bots.process.health import WebhookHealth
from draftsman_bots.process.http import serve, serve_health

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman_bots.pagers.records.pager_event import PagerEvent


# The endpoint of webhooks: `POST /pagers/NAME`.
#
# A genuine webhook gets a 2xx whatever it does, because PagerDuty turns a webhook off for a day
# after three refusals; it gets a 503 only if it has to be delivered again.


BODY: Final = 3.0
"""Seconds to receive a request body; Grafana OnCall waits four seconds for the response."""
_log = logging.getLogger(__name__)


class PagerHealth(WebhookHealth):
    """Health and metrics of the receipt of webhooks of pagers."""

    def __init__(self) -> None:
        super().__init__(
            "pager",
            "kind",
            "Webhooks about alerts of questions, by pager and kind; repetitions count.",
        )


class PagerReceiver:
    """Applies the webhooks of the pagers whose secrets are given."""

    def __init__(self, rt: Runtime, health: WebhookHealth, secrets: Mapping[str, str]) -> None:
        self._rt = rt
        self._health = health
        self._secrets = secrets

    def application(self) -> Starlette:
        """Return the ASGI application: webhooks, and of the health endpoints `/healthz` only."""
        routes = http.health_routes(self._health, alone=False)
        routes.append(Route("/pagers/{name}", self._receive, methods=["POST"]))
        return Starlette(routes=routes)

    async def _receive(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._secrets:
            return PlainTextResponse("no such pager\n", status_code=404)
        try:
            raw = await http.read_body(request, BODY)
        except http.BodyRejected as error:
            return self._reject(error.status, error.reason, str(error))
        kind = PagerSettings.of(self._rt.settings)[name].format
        if not webhook.is_genuine(kind, self._secrets[name], dict(request.headers), raw):
            text = f"the signature is wrong: is [pagers.{name}] webhook_secret that of the webhook?"
            return self._reject(401, "signature", text)
        document = read_object(raw)
        if document is None:
            return self._reject(400, "json", "the body is not a JSON object")
        event = webhook.content(name, kind, document)
        if event is None:
            return PlainTextResponse("ignored: not about a question\n")
        try:
            outcome = await self._apply(event)
        except DatabaseUnreachable as error:
            _log.warning("a webhook of pager %s was not stored: %s", name, error)
            return PlainTextResponse("not stored; deliver it again\n", status_code=503)
        except DraftsmanError as error:
            _log.warning("a webhook of pager %s has no effect: %s", name, error)
            return PlainTextResponse(f"without effect: {error}\n")
        self._health.count(name, event.kind)
        _log.info("pager %s: %s by %r: %s", name, event.kind, event.name, outcome)
        return PlainTextResponse(f"{outcome}\n")

    async def _apply(self, event: PagerEvent) -> str:
        events = PagerEvents(self._rt.db, self._rt.acknowledgments)
        return await events.record(event, await self._actor(event))

    async def _actor(self, event: PagerEvent) -> Actor | None:
        """Return the user of an event, with their person if an id of theirs is mapped."""
        actor = None
        for user in event.users:
            id = f"{event.pager}:{user}".casefold()
            actor = await self._rt.people.actor(Actor("pager", id, event.name or user))
            if actor.person is not None:
                return actor
        return actor

    def _reject(self, status: int, reason: str, text: str) -> Response:
        self._health.count_rejected(reason, text)
        return PlainTextResponse(f"{text}\n", status_code=status)


class PagerService(ComponentGroup):
    """Webhook servers of the configured pagers."""

    def __init__(self, rt: Runtime) -> None:
        """Create the components; raises ConfigError if an address cannot be used."""
        self.health = PagerHealth()
        self.health.read_problems = rt.readiness.problems
        self.ports: dict[str, int] = {}
        """Port of the webhook server of each pager."""
        self.health_port: int | None = None
        """Port of the server of the health endpoints; None without `health_listen`."""
        super().__init__([*self._servers(rt)])

    def _servers(self, rt: Runtime) -> Iterator[Component]:
        """Yield a server for each address, with the pagers that share it, and health servers."""
        pagers = webhook_pagers(rt.settings)
        by_address: dict[tuple[str, int], list[str]] = defaultdict(list)
        for name, pager in pagers.items():
            if pager.address is not None:
                by_address[pager.address].append(name)
        for address, names in by_address.items():
            secrets = {
                name: read_credential(
                    f"pagers.{name}", "webhook_secret", pagers[name].webhook_secret
                )
                for name in names
            }
            app = PagerReceiver(rt, self.health, secrets).application()
            server = serve(app, address, f"pagers.{names[0]}")
            self.ports |= dict.fromkeys(names, server.port)
            yield server
        addresses = {f"pagers.{name}": pager.health_address for name, pager in pagers.items()}
        for server in serve_health(self.health, addresses):
            self.health_port = server.port
            yield server
