"""Attachments of cards."""

from __future__ import annotations

from typing import Any

from tests.support.trello import serializers
from tests.support.trello.methods.registry import Ask, route
from tests.support.trello.operations import card_extras
from tests.support.trello.world import known


@route("GET", "/cards/{id}/attachments")
def attachments(ask: Ask) -> Any:
    found = [serializers.attachment(one) for one in ask.card().attachments]
    return serializers.only(found, ask.text("fields"))


@route("POST", "/cards/{id}/attachments")
def attach(ask: Ask) -> Any:
    """Attach `file` or `url`; a file without a `name` keeps its own."""
    file = ask.files.get("file")
    made = card_extras.attach(
        ask.world,
        ask.card().id,
        ask.by,
        ask.text("name") or (file.name if file else ""),
        data=file.data if file else None,
        url="" if file else ask.text("url"),
        mime=ask.text("mimeType") or (file.mime if file else ""),
        most=ask.most,
    )
    return serializers.attachment(made)


@route("GET", "/cards/{id}/attachments/{idAttachment}")
def one(ask: Ask) -> Any:
    found = {one.id: one for one in ask.card().attachments}
    return serializers.attachment(known(found, ask.parts["idAttachment"]))


@route("DELETE", "/cards/{id}/attachments/{idAttachment}")
def detach(ask: Ask) -> Any:
    card_extras.detach(ask.world, ask.card().id, ask.parts["idAttachment"], ask.by)
    return {"limits": {}}
