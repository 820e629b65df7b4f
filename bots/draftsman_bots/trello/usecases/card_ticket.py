"""Ticket: the snapshot of a card that is stored with its job, and its text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from draftsman.domain.text import clean
from draftsman_bots.trello.markdown import marker_of

if TYPE_CHECKING:
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
    fields = _all(card, "customFieldItems")
    definitions = await trello.get(f"/boards/{board}/customFields") if fields else []
    snapshot: Json = {
        "card": _text(card, "id"),
        "url": _text(card, "shortUrl"),
        "title": _text(card, "name"),
        "description": _text(card, "desc"),
        "list": _text(card.get("list"), "name"),
        "due": card.get("due"),
        "activity": _text(card, "dateLastActivity"),
        "labels": [
            {"id": _text(label, "id"), "name": _text(label, "name")}
            for label in _all(card, "labels")
        ],
        "members": [_person(member) for member in _all(card, "members")],
        "checklists": [_checklist(checklist) for checklist in _all(card, "checklists")],
        "attachments": [
            {"name": _text(attachment, "name"), "bytes": attachment.get("bytes")}
            for attachment in _all(card, "attachments")
        ],
        "custom_fields": [_field(item, definitions) for item in fields],
        "comments": list(filter(None, map(_comment, reversed(_all(card, "actions"))))),
    }
    return _truncated(clean(snapshot))


def ticket_text(ticket: Json) -> str:
    """Return a ticket as text: the description, then the other content of the card."""
    return "\n\n".join(part for part in _parts(ticket) if part)[:MAX_TEXT]


def _parts(ticket: Json) -> Iterator[str]:
    yield ticket["description"].strip() or ticket["title"]
    for checklist in ticket["checklists"]:
        items = [
            f"- [{'x' if item['done'] else ' '}] {item['name']}" for item in checklist["items"]
        ]
        yield "\n".join([f"{checklist['name']}:", *items])
    for field in ticket["custom_fields"]:
        yield f"{field['name']}: {field['value']}"
    if ticket["attachments"]:
        yield "Attached: " + ", ".join(attachment["name"] for attachment in ticket["attachments"])
    for comment in ticket["comments"]:
        yield f"{comment['by']} commented:\n{comment['text']}"


def _truncated(ticket: Json) -> Json:
    while ticket["comments"] and len(json.dumps(ticket)) > MAX_TICKET:
        ticket["comments"] = ticket["comments"][len(ticket["comments"]) // 2 + 1 :]
        ticket["truncated"] = True
    return ticket


def _comment(action: Json) -> Json | None:
    """Return a comment, or None if the bot wrote it."""
    data = action.get("data")
    text = _text(data, "text")
    if not text or marker_of(text) is not None:
        return None
    member = action.get("memberCreator")
    by = _text(member, "fullName") or _text(member, "username")
    return {"id": _text(action, "id"), "by": by, "at": _text(action, "date"), "text": text}


def _checklist(checklist: Json) -> Json:
    items = [
        {"name": _text(item, "name"), "done": item.get("state") == "complete"}
        for item in _all(checklist, "checkItems")
    ]
    return {"name": _text(checklist, "name"), "items": items}


def _field(item: Json, definitions: Any) -> Json:
    by_id = {_text(d, "id"): d for d in definitions if isinstance(d, dict)} if definitions else {}
    definition: Json = by_id.get(_text(item, "idCustomField"), {})
    value = item.get("value")
    if isinstance(value, dict):
        text = ", ".join(str(part) for part in value.values())
    else:
        options = {
            _text(option, "id"): _text(option.get("value"), "text")
            for option in _all(definition, "options")
        }
        text = options.get(_text(item, "idValue"), "")
    return {"name": _text(definition, "name"), "value": text}


def _person(member: Json) -> Json:
    name = _text(member, "fullName") or _text(member, "username")
    return {"id": _text(member, "id"), "name": name}


def _all(source: Json, name: str) -> list[Json]:
    value = source.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(source: Any, name: str) -> str:
    value = source.get(name) if isinstance(source, dict) else None
    return value if isinstance(value, str) else ""
