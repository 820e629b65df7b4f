"""Attachments of cards."""

from __future__ import annotations

from typing import Any

from tests.support.trello import serializers
from tests.support.trello.methods.registry import ApiCall, route
from tests.support.trello.operations import card_extras
from tests.support.trello.world import known


@route("GET", "/cards/{id}/attachments")
def attachments(call: ApiCall) -> Any:
    entries = [serializers.attachment(attachment) for attachment in call.card().attachments]
    return serializers.only(entries, call.text("fields"))


@route("POST", "/cards/{id}/attachments")
def attach(call: ApiCall) -> Any:
    """Attach `file` or `url`; a file without a `name` keeps its own."""
    file = call.files.get("file")
    attachment = card_extras.attach(
        call.world,
        call.card().id,
        call.by,
        call.text("name") or (file.name if file else ""),
        data=file.data if file else None,
        url="" if file else call.text("url"),
        mime=call.text("mimeType") or (file.mime if file else ""),
        max_bytes=call.most,
    )
    return serializers.attachment(attachment)


@route("GET", "/cards/{id}/attachments/{idAttachment}")
def attachment(call: ApiCall) -> Any:
    by_id = {attachment.id: attachment for attachment in call.card().attachments}
    return serializers.attachment(known(by_id, call.parts["idAttachment"]))


@route("DELETE", "/cards/{id}/attachments/{idAttachment}")
def detach(call: ApiCall) -> Any:
    card_extras.detach(call.world, call.card().id, call.parts["idAttachment"], call.by)
    return {"limits": {}}
