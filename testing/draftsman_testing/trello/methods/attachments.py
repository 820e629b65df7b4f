"""Attachments of cards."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from aiohttp import web

from draftsman_testing.trello import serializers
from draftsman_testing.trello.api_errors import forbidden, not_found
from draftsman_testing.trello.methods.registry import ApiCall, route
from draftsman_testing.trello.operations import card_extras
from draftsman_testing.trello.world import known


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


@route("GET", "/cards/{id}/attachments/{idAttachment}/download/{file}")
def download(call: ApiCall) -> Any:
    """Return the file, or the address in the storage for a redirect.

    Since 25 January 2021 only the Authorization header counts, not the query
    (community.developer.atlassian.com/t/update-authenticated-access-to-s3/43681); other requests
    get `unauthorized permission requested`. Redirects are those of the announcement of 2020.
    """
    if call.auth != "header":
        raise forbidden()
    by_id = {attachment.id: attachment for attachment in call.card().attachments}
    found = known(by_id, call.parts["idAttachment"])
    if found.data is None or unquote(found.url.rpartition("/")[2]) != call.parts["file"]:
        raise not_found()
    if call.world.storage_url:
        location = f"{call.world.storage_url}/{found.id}"
        return web.Response(status=302, headers={"Location": location})
    return web.Response(body=found.data, content_type="application/octet-stream")
