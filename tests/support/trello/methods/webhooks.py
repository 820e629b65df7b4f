"""Webhooks: they belong to the token."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from tests.support.trello import serializers
from tests.support.trello.action_log import model
from tests.support.trello.api_errors import ApiError, invalid_value, not_found
from tests.support.trello.entities import Webhook
from tests.support.trello.methods.registry import Ask, route
from tests.support.trello.world import is_id, known

DESCRIPTION_MOST: Final = 16384


@route("GET", "/tokens/{token}/webhooks")
def of_token(ask: Ask) -> Any:
    if ask.parts["token"] != ask.world.token:
        raise ApiError(401, "invalid token")
    return [serializers.webhook(one) for one in ask.world.webhooks.values()]


@route("POST", "/tokens/{token}/webhooks")
async def make_by_token(ask: Ask) -> Any:
    if ask.parts["token"] != ask.world.token:
        raise ApiError(401, "invalid token")
    return await make(ask)


@route("POST", "/webhooks")
async def make(ask: Ask) -> Any:
    """Make a webhook, once the callback answered HEAD with 200.

    The words of both refusals, of the callback and of a second webhook, are from memory.
    """
    world, watched, url = ask.world, ask.text("idModel"), ask.text("callbackURL")
    _check(ask, watched, url)
    twins = [one for one in world.webhooks.values() if (one.model, one.url) == (watched, url)]
    if twins:
        raise ApiError(400, "A webhook with that callback, model, and token already exists")
    await _head(ask, url)
    active = ask.flag("active", True)
    made = Webhook(world.id(), watched, url, world.token, ask.text("description"), active)
    world.webhooks[made.id] = made
    return serializers.webhook(made)


def _check(ask: Ask, watched: str, url: str) -> None:
    if not is_id(watched):
        raise invalid_value("idModel")
    if model(ask.world, watched) is None:
        raise not_found()
    if watched in ask.world.boards:
        ask.may_see(watched)
    if len(ask.text("description")) > DESCRIPTION_MOST:
        raise invalid_value("description")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise invalid_value("callbackURL")


async def _head(ask: Ask, url: str) -> None:
    status = await ask.webhook_delivery.head(url)
    if status != 200:
        got = "no answer" if status is None else status
        raise ApiError(400, f"URL ({url}) did not return 200 status code, got {got}")


@route("GET", "/webhooks/{id}")
def one(ask: Ask) -> Any:
    return serializers.webhook(known(ask.world.webhooks, ask.parts["id"]))


@route("PUT", "/webhooks/{id}")
async def change(ask: Ask) -> Any:
    """Change a webhook; to make it active again forgets its failures."""
    found = known(ask.world.webhooks, ask.parts["id"])
    url = ask.text("callbackURL") or found.url
    watched = ask.text("idModel") or found.model
    _check(ask, watched, url)
    active = ask.flag("active", found.active)
    if url != found.url or active:
        await _head(ask, url)
    if active:
        found.failures, found.first_failure = 0, None
    found.url, found.model, found.active = url, watched, active
    found.description = ask.text("description", found.description)
    return serializers.webhook(found)


@route("DELETE", "/webhooks/{id}")
def delete(ask: Ask) -> Any:
    known(ask.world.webhooks, ask.parts["id"])
    del ask.world.webhooks[ask.parts["id"]]
    return {"_value": None}
