"""Webhooks: they belong to the token."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from draftsman_testing.trello import serializers
from draftsman_testing.trello.action_log import model
from draftsman_testing.trello.api_errors import ApiError, invalid_value, not_found
from draftsman_testing.trello.entities import Webhook
from draftsman_testing.trello.methods.registry import ApiCall, route
from draftsman_testing.trello.world import is_id, known

DESCRIPTION_MOST: Final = 16384


@route("GET", "/tokens/{token}/webhooks")
def of_token(call: ApiCall) -> Any:
    if call.parts["token"] != call.world.token:
        raise ApiError(401, "invalid token")
    return [serializers.webhook(webhook) for webhook in call.world.webhooks.values()]


@route("POST", "/tokens/{token}/webhooks")
async def make_by_token(call: ApiCall) -> Any:
    if call.parts["token"] != call.world.token:
        raise ApiError(401, "invalid token")
    return await make(call)


@route("POST", "/webhooks")
async def make(call: ApiCall) -> Any:
    """Make a webhook, once the callback answered HEAD with 200.

    The words of both refusals, of the callback and of a second webhook, are from memory.
    """
    world = call.world
    watched = call.text("idModel")
    url = call.text("callbackURL")
    _check(call, watched, url)
    duplicates = [
        webhook
        for webhook in world.webhooks.values()
        if (webhook.model, webhook.url) == (watched, url)
    ]
    if duplicates:
        raise ApiError(400, "A webhook with that callback, model, and token already exists")
    await _head(call, url)
    active = call.flag("active", True)
    webhook = Webhook(world.id(), watched, url, world.token, call.text("description"), active)
    world.webhooks[webhook.id] = webhook
    return serializers.webhook(webhook)


def _check(call: ApiCall, watched: str, url: str) -> None:
    if not is_id(watched):
        raise invalid_value("idModel")
    if model(call.world, watched) is None:
        raise not_found()
    if watched in call.world.boards:
        call.may_see(watched)
    if len(call.text("description")) > DESCRIPTION_MOST:
        raise invalid_value("description")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise invalid_value("callbackURL")


async def _head(call: ApiCall, url: str) -> None:
    status = await call.webhook_delivery.head(url)
    if status != 200:
        got = "no answer" if status is None else status
        raise ApiError(400, f"URL ({url}) did not return 200 status code, got {got}")


@route("GET", "/webhooks/{id}")
def get(call: ApiCall) -> Any:
    return serializers.webhook(known(call.world.webhooks, call.parts["id"]))


@route("PUT", "/webhooks/{id}")
async def change(call: ApiCall) -> Any:
    """Change a webhook; to make it active again forgets its failures."""
    webhook = known(call.world.webhooks, call.parts["id"])
    url = call.text("callbackURL") or webhook.url
    watched = call.text("idModel") or webhook.model
    _check(call, watched, url)
    active = call.flag("active", webhook.active)
    if url != webhook.url or active:
        await _head(call, url)
    if active:
        webhook.failures = 0
        webhook.first_failure = None
    webhook.url = url
    webhook.model = watched
    webhook.active = active
    webhook.description = call.text("description", webhook.description)
    return serializers.webhook(webhook)


@route("DELETE", "/webhooks/{id}")
def delete(call: ApiCall) -> Any:
    known(call.world.webhooks, call.parts["id"])
    del call.world.webhooks[call.parts["id"]]
    return {"_value": None}
