"""The endpoint of webhooks: `POST /forges/NAME`.

An event is acknowledged once it is stored. Forges repeat a delivery without a 2xx, by themselves
(GitLab) or by hand (GitHub, Gitea), and each repetition has no further effect.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from draftsman.errors import DraftsmanError
from draftsman.forges import webhooks
from draftsman_bots.process import http

if TYPE_CHECKING:
    from collections.abc import Mapping

    from draftsman.forges.webhooks import WebhookSecrets
    from draftsman_bots.forges.receiver import ForgeReceiver

BODY: Final = 5.0
"""Seconds to receive a request body."""
_log = logging.getLogger(__name__)


def application(receiver: ForgeReceiver, secrets: Mapping[str, WebhookSecrets]) -> Starlette:
    """Return the ASGI application of the forges whose webhook secrets are given.

    Of the health endpoints it has `/healthz` only.
    """

    async def receive(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in secrets:
            return PlainTextResponse("no such forge\n", status_code=404)
        return await _receive(receiver, name, secrets[name], request)

    routes = http.health_routes(receiver.health, alone=False)
    routes.append(Route("/forges/{name}", receive, methods=["POST"]))
    return Starlette(routes=routes)


async def _receive(
    receiver: ForgeReceiver, name: str, secrets: WebhookSecrets, request: Request
) -> Response:
    try:
        raw = await http.read_body(request, BODY)
    except http.BodyRejected as error:
        return _reject(receiver, error.status, error.reason, str(error))
    kind, headers = receiver.kind(name), dict(request.headers)
    project = webhooks.claimed_project(kind, raw)
    if not webhooks.is_genuine(kind, secrets.of(project), headers, raw):
        key = "webhook_secrets" if project in secrets.by_project else "webhook_secret"
        text = f"the signature is wrong: is [forges.{name}] {key} that of the webhook?"
        return _reject(receiver, 401, "signature", text)
    notification = webhooks.content(kind, headers, raw)
    if notification is None:
        return _reject(receiver, 400, "json", "the body is not JSON: set content type JSON")
    try:
        new = await receiver.receive(name, "webhook", notification.events)
    except DraftsmanError as error:
        _log.warning("a webhook of %s was not stored: %s", name, error)
        return PlainTextResponse("not stored; deliver it again\n", status_code=503)
    if notification.changed and notification.project:
        receiver.changed(name, notification.project)
    return PlainTextResponse(f"{new} new\n")


def _reject(receiver: ForgeReceiver, status: int, reason: str, text: str) -> Response:
    receiver.health.count_rejected(reason, text)
    return PlainTextResponse(f"{text}\n", status_code=status)
