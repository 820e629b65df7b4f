"""Ticket: the snapshot of a card that is stored with its job, and its text.

A single request reads the card with all its content, for which py-trello's `Card` sends five.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from draftsman.text import clean
from draftsman_bots.json_fields import nested, objects, string
from draftsman_bots.trello.deliveries.checklists import is_own_name
from draftsman_bots.trello.deliveries.markdown import marker_of

if TYPE_CHECKING:
    from trello.customfield import CustomFieldDefinition

    from draftsman_bots.trello.transport.client import Trello

CARD_QUERY: Final[dict[str, Any]] = {
    "fields": "name,desc,closed,idBoard,idList,idLabels,labels,shortUrl,dateLastActivity,due",
    "attachments": "true",
    "checklists": "all",
    "members": "true",
    "list": "true",
    "customFieldItems": "true",
    "actions": "commentCard",
    "actions_limit": 200,
}
"""Query for a card with all its content in a single request."""
MAX_TICKET: Final = 700_000
"""Maximum bytes of a ticket as JSON; the oldest comments are dropped first."""
MAX_TEXT: Final = 150_000
"""Maximum characters of the text."""
Json = dict[str, Any]


async def fetch_card(trello: Trello, card: str) -> Json:
    """Return a card with all its content; raises Failure."""
    response = await trello.get(f"/cards/{card}", **CARD_QUERY)
    return response if isinstance(response, dict) else {}


async def ticket(trello: Trello, board: str, card: Json) -> Json:
    """Return the ticket of a card; raises Failure if the custom fields cannot be read."""
    fields = objects(card, "customFieldItems")
    definitions = (
        await trello.read(trello.board(board).get_custom_field_definitions) if fields else []
    )
    snapshot: Json = {
        "card": string(card, "id"),
        "url": string(card, "shortUrl"),
        "title": string(card, "name"),
        "description": string(card, "desc"),
        "list": string(nested(card, "list"), "name"),
        "due": card.get("due"),
        "activity": string(card, "dateLastActivity"),
        "labels": [
            {"id": string(label, "id"), "name": string(label, "name")}
            for label in objects(card, "labels")
        ],
        "members": [_person(member) for member in objects(card, "members")],
        "checklists": [
            _checklist(checklist)
            for checklist in objects(card, "checklists")
            if not is_own_name(string(checklist, "name"))
        ],
        "attachments": [_attachment(attachment) for attachment in objects(card, "attachments")],
        "custom_fields": [_field(item, definitions) for item in fields],
        "comments": list(filter(None, map(_comment, reversed(objects(card, "actions"))))),
    }
    return _truncated(clean(snapshot))


def ticket_text(ticket: Json) -> str:
    """Return a ticket as text: the description, then the other content of the card."""
    return "\n\n".join(paragraph for paragraph in _paragraphs(ticket) if paragraph)[:MAX_TEXT]


def _paragraphs(ticket: Json) -> Iterator[str]:
    yield ticket["description"].strip() or ticket["title"]
    for checklist in ticket["checklists"]:
        items = [
            f"- [{'x' if item['done'] else ' '}] {item['name']}" for item in checklist["items"]
        ]
        yield "\n".join([f"{checklist['name']}:", *items])
    for field in ticket["custom_fields"]:
        yield f"{field['name']}: {field['value']}"
    if ticket["attachments"]:
        yield "Attached: " + ", ".join(map(_attachment_text, ticket["attachments"]))
    for comment in ticket["comments"]:
        yield f"{comment['by']} commented:\n{comment['text']}"


def _attachment(attachment: Json) -> Json:
    """Return the name and size of a file, or the address of a link."""
    described = {"name": string(attachment, "name"), "bytes": attachment.get("bytes")}
    if attachment.get("isUpload") is False:
        described["url"] = string(attachment, "url")
    return described


def _attachment_text(attachment: Json) -> str:
    name = attachment["name"]
    url = attachment.get("url")
    return f"{name} ({url})" if url and url != name else name


def _truncated(ticket: Json) -> Json:
    while ticket["comments"] and len(json.dumps(ticket)) > MAX_TICKET:
        ticket["comments"] = ticket["comments"][len(ticket["comments"]) // 2 + 1 :]
        ticket["truncated"] = True
    return ticket


def _comment(action: Json) -> Json | None:
    """Return a comment, or None if the bot wrote it."""
    data = action.get("data")
    text = string(data, "text")
    if not text or marker_of(text) is not None:
        return None
    member = action.get("memberCreator")
    by = string(member, "fullName") or string(member, "username")
    return {"id": string(action, "id"), "by": by, "at": string(action, "date"), "text": text}


def _checklist(checklist: Json) -> Json:
    items = [
        {"name": string(item, "name"), "done": item.get("state") == "complete"}
        for item in objects(checklist, "checkItems")
    ]
    return {"name": string(checklist, "name"), "items": items}


def _field(item: Json, definitions: Sequence[CustomFieldDefinition]) -> Json:
    by_id = {definition.id: definition for definition in definitions}
    definition = by_id.get(string(item, "idCustomField"))
    if definition is None:
        return {"name": "", "value": _field_value(item, {})}
    return {"name": definition.name, "value": _field_value(item, definition.list_options)}


def _field_value(item: Json, options: Mapping[str, str]) -> str:
    value = item.get("value")
    if isinstance(value, dict):
        return ", ".join(str(part) for part in value.values())
    return options.get(string(item, "idValue"), "")


def _person(member: Json) -> Json:
    name = string(member, "fullName") or string(member, "username")
    return {"id": string(member, "id"), "name": name}
