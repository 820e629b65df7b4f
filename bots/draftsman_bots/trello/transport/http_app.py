"""Webhook endpoint with signature check, and health routes.

Trello deletes a webhook after a 410 and disables it after repeated failures. Signed requests that
are ignored get a 200, and only requests that Trello should repeat get a 503.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from draftsman.errors import DatabaseUnreachable, DraftsmanError, Failure, LostRace
from draftsman_bots.process import http
from draftsman_bots.trello import action_router, actions
from draftsman_bots.trello.requests import label_jobs

if TYPE_CHECKING:
    from draftsman_bots.trello.action_router import StartedEpisodes
    from draftsman_bots.trello.actions import Action
    from draftsman_bots.trello.context import BotContext


# Webhook signatures: HMAC-SHA1 of the raw body and the callback URL.
#
# A signature contains no time, so a replayed request is valid; idempotency keys make it harmless.


HEADER: Final = "x-trello-webhook"


def check(secret: str, callback: str, body: bytes, signature: str) -> bool:
    """Return whether a body was signed for a callback URL with the app's secret."""
    if not signature.isascii() or len(signature) > 100:
        return False
    return hmac.compare_digest(sign(secret, callback, body), signature)


def sign(secret: str, callback: str, body: bytes) -> str:
    """Return the signature of a body for a callback URL, exactly as registered."""
    digest = hmac.new(secret.encode(), body + callback.encode(), hashlib.sha1)
    return base64.b64encode(digest.digest()).decode()


DEADLINE: Final = 20.0
"""Seconds until the response is sent; Trello waited for 30 s in 2017."""
BODY: Final = 5.0
"""Seconds to receive a request body."""
MISMATCH: Final = "signature"
_log = logging.getLogger(__name__)


def application(context: BotContext, secret: str) -> Starlette:
    """Return the ASGI application; without a callback URL it has only the health routes.

    With `health_listen`, `/readyz` and `/metrics` are on that address instead.
    """

    async def trello(request: Request) -> Response:
        if request.method == "HEAD":
            return Response()
        return await _receive(request, context, secret)

    alone = context.settings.health_listen is None
    routes = http.health_routes(context.health, alone=alone)
    if context.settings.callback_url is not None:
        # any path: a proxy may change it, and the signature covers the original URL
        routes.append(Route("/{path:path}", trello, methods=["HEAD", "POST"]))
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False
    return app


async def _receive(request: Request, context: BotContext, secret: str) -> Response:
    try:
        raw = await http.read_body(request, BODY)
    except http.BodyRejected as error:
        return _reject(context, error.status, error.reason, str(error))
    callback = context.settings.callback_url or ""
    received = request.headers.get(HEADER, "")
    if not check(secret, callback, raw, received):
        text = (
            "the signature is wrong: check that [trello] secret belongs to this app and that"
            " callback_url is the URL of the webhook"
        )
        return _reject(context, 401, MISMATCH if received else "unsigned", text)
    action = actions.parse_action(actions.parse_body(raw))
    if action is None:
        context.health.count_action("webhook", "none", action_router.IGNORED)
        return PlainTextResponse("ignored\n")
    return await _answer(context, action)


async def _answer(context: BotContext, action: Action) -> Response:
    """Handle an action, then acknowledge it."""
    outcome = "retry"
    started: StartedEpisodes = []
    try:
        if not context.me:
            raise LostRace("the bot's Trello account is not known yet")
        async with asyncio.timeout(DEADLINE):
            outcome = await action_router.on_webhook(context, action, started)
    except (DatabaseUnreachable, LostRace, Failure, TimeoutError) as error:
        reason = str(error) or "timed out"
        _log.warning("%s webhook failed; Trello will retry: %s", action.kind, reason)
    except DraftsmanError as error:
        outcome = "rejected"
        _log.info("%s webhook rejected: %s", action.kind, error)
    except Exception as error:
        outcome = "error"
        _log.error("%s webhook failed unexpectedly", action.kind, exc_info=error)
    context.health.count_action("webhook", action.kind, outcome)
    if started:
        context.background.spawn(_continue(context, started))
    return PlainTextResponse(f"{outcome}\n", status_code=503 if outcome == "retry" else 200)


async def _continue(context: BotContext, started: StartedEpisodes) -> None:
    """Continue new episodes now instead of at the next poll."""
    for board, episode, by in started:
        try:
            await label_jobs.process_episode(context, board, episode, by)
        except DraftsmanError as error:
            _log.warning("card %s: left to the next poll: %s", episode.card, error)


def _reject(context: BotContext, status: int, reason: str, text: str) -> Response:
    context.health.count_rejected(reason, text)
    return PlainTextResponse(f"{text}\n", status_code=status)
