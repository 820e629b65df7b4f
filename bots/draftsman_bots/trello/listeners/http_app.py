"""The HTTP side: what Trello sends, checked before anything reads it, and the bot's health.

Trello takes 410 for a wish to hear no more, and gives up after failures: what is signed and means
nothing to us is answered with 200, and only what is to come again with 503.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from draftsman.errors import DatabaseUnreachable, DraftsmanError, Failure, LostRace
from draftsman_bots import http
from draftsman_bots.trello.listeners import action_router
from draftsman_bots.trello.parsers import actions
from draftsman_bots.trello.transport import signature
from draftsman_bots.trello.usecases import label_jobs

if TYPE_CHECKING:
    from draftsman_bots.trello.context import BotContext
    from draftsman_bots.trello.listeners.action_router import StartedEpisodes
    from draftsman_bots.trello.parsers.actions import Action

DEADLINE: Final = 20.0
"""Seconds until an answer goes out; Trello waited for thirty in 2017."""
BODY: Final = 5.0
"""Seconds in which a body is to be there."""
MISMATCH: Final = "signature"
_log = logging.getLogger(__name__)


def application(desk: BotContext, secret: str) -> Starlette:
    """Return the ASGI application; without a callback URL it serves its health alone.

    With `health_listen`, `/readyz` and `/metrics` are served there.
    """

    async def trello(request: Request) -> Response:
        if request.method == "HEAD":
            return Response()
        return await _hear(request, desk, secret)

    alone = desk.settings.health_listen is None
    routes = http.health_routes(desk.health, alone=alone)
    if desk.settings.callback_url is not None:
        # whatever the path: a proxy may change it, and the signature says what it was
        routes.append(Route("/{path:path}", trello, methods=["HEAD", "POST"]))
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False
    return app


async def _hear(request: Request, desk: BotContext, secret: str) -> Response:
    try:
        async with asyncio.timeout(BODY):
            raw = await http.read_body(request)
    except TimeoutError:
        return _turned_away(desk, 408, "slow", "its body took too long")
    except ClientDisconnect:
        return _turned_away(desk, 400, "cut", "it ended before its body did")
    if raw is None:
        return _turned_away(desk, 413, "large", f"its body is over {http.MAX_BODY_BYTES} bytes")
    callback, given = desk.settings.callback_url or "", request.headers.get(signature.HEADER, "")
    if not signature.check(secret, callback, raw, given):
        text = (
            "its signature is wrong: is secret that of this app, and callback_url what Trello has?"
        )
        return _turned_away(desk, 401, MISMATCH if given else "unsigned", text)
    action = actions.parse_action(actions.parse_body(raw))
    if action is None:
        desk.health.count_action("webhook", "none", action_router.IGNORED)
        return PlainTextResponse("ignored\n")
    return await _answer(desk, action)


async def _answer(desk: BotContext, action: Action) -> Response:
    """Take note of an action before it is acknowledged."""
    outcome, begun = "later", []  # type: tuple[str, StartedEpisodes]
    try:
        if not desk.me:
            raise LostRace("Trello has not said yet who we are")
        async with asyncio.timeout(DEADLINE):
            outcome = await action_router.on_webhook(desk, action, begun)
    except (DatabaseUnreachable, LostRace, Failure, TimeoutError) as error:
        _log.warning("a %s of Trello's is to come again: %s", action.kind, str(error) or "too slow")
    except DraftsmanError as error:
        outcome = "refused"
        _log.info("a %s of Trello's was refused: %s", action.kind, error)
    except Exception as error:
        outcome = "broken"
        _log.error("a %s of Trello's broke the bot", action.kind, exc_info=error)
    desk.health.count_action("webhook", action.kind, outcome)
    if begun:
        desk.background.spawn(_carry_on(desk, begun))
    return PlainTextResponse(f"{outcome}\n", status_code=503 if outcome == "later" else 200)


async def _carry_on(desk: BotContext, begun: StartedEpisodes) -> None:
    """Do at once what the poller would do with its next look."""
    for board, episode, by in begun:
        try:
            await label_jobs.process_episode(desk, board, episode, by)
        except DraftsmanError as error:
            _log.warning("card %s waits for the poller: %s", episode.card, error)


def _turned_away(desk: BotContext, status: int, reason: str, text: str) -> Response:
    desk.health.count_rejected(reason, text)
    return PlainTextResponse(f"{text}\n", status_code=status)
