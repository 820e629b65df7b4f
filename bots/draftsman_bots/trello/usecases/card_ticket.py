"""A card as it was when its job was made: kept with the job, and said in words."""

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
"""What is asked for of a card: all of it in one request."""
MAX_TICKET: Final = 700_000
"""Bytes of a snapshot, as JSON; the oldest comments of a longer one are left out."""
MAX_TEXT: Final = 150_000
"""Characters of the words."""
Json = dict[str, Any]


async def fetch_card(trello: Trello, card: str) -> Json:
    """Return a card with all that is on it; raises Failure."""
    found = await trello.get(f"/cards/{card}", **CARD_QUERY)
    return found if isinstance(found, dict) else {}


async def ticket(trello: Trello, board: str, card: Json) -> Json:
    """Return what is kept of a card; raises Failure where its custom fields have no names."""
    fields = _all(card, "customFieldItems")
    names = await trello.get(f"/boards/{board}/customFields") if fields else []
    made: Json = {
        "card": _text(card, "id"),
        "url": _text(card, "shortUrl"),
        "title": _text(card, "name"),
        "description": _text(card, "desc"),
        "list": _text(card.get("list"), "name"),
        "due": card.get("due"),
        "activity": _text(card, "dateLastActivity"),
        "labels": [
            {"id": _text(one, "id"), "name": _text(one, "name")} for one in _all(card, "labels")
        ],
        "members": [_person(one) for one in _all(card, "members")],
        "checklists": [_checklist(one) for one in _all(card, "checklists")],
        "attachments": [
            {"name": _text(one, "name"), "bytes": one.get("bytes")}
            for one in _all(card, "attachments")
        ],
        "custom_fields": [_field(one, names) for one in fields],
        "comments": [one for one in map(_comment, reversed(_all(card, "actions"))) if one],
    }
    return _fitted(clean(made))


def ticket_text(made: Json) -> str:
    """Return what a card asks, in words: the description, then what else is on it."""
    return "\n\n".join(part for part in _parts(made) if part)[:MAX_TEXT]


def _parts(made: Json) -> Iterator[str]:
    yield made["description"].strip() or made["title"]
    for one in made["checklists"]:
        items = [f"- [{'x' if item['done'] else ' '}] {item['name']}" for item in one["items"]]
        yield "\n".join([f"{one['name']}:", *items])
    for one in made["custom_fields"]:
        yield f"{one['name']}: {one['value']}"
    if made["attachments"]:
        yield "Attached: " + ", ".join(one["name"] for one in made["attachments"])
    for one in made["comments"]:
        yield f"{one['by']} commented:\n{one['text']}"


def _fitted(made: Json) -> Json:
    while made["comments"] and len(json.dumps(made)) > MAX_TICKET:
        made["comments"] = made["comments"][len(made["comments"]) // 2 + 1 :]
        made["truncated"] = True
    return made


def _comment(action: Json) -> Json | None:
    """Return a comment of somebody's, None for one of ours."""
    data = action.get("data")
    text = _text(data, "text")
    if not text or marker_of(text) is not None:
        return None
    who = action.get("memberCreator")
    by = _text(who, "fullName") or _text(who, "username")
    return {"id": _text(action, "id"), "by": by, "at": _text(action, "date"), "text": text}


def _checklist(one: Json) -> Json:
    items = [
        {"name": _text(item, "name"), "done": item.get("state") == "complete"}
        for item in _all(one, "checkItems")
    ]
    return {"name": _text(one, "name"), "items": items}


def _field(one: Json, names: Any) -> Json:
    known = {_text(n, "id"): n for n in names if isinstance(n, dict)} if names else {}
    about: Json = known.get(_text(one, "idCustomField"), {})
    value = one.get("value")
    if isinstance(value, dict):
        shown = ", ".join(str(part) for part in value.values())
    else:
        options = {_text(n, "id"): _text(n.get("value"), "text") for n in _all(about, "options")}
        shown = options.get(_text(one, "idValue"), "")
    return {"name": _text(about, "name"), "value": shown}


def _person(one: Json) -> Json:
    return {"id": _text(one, "id"), "name": _text(one, "fullName") or _text(one, "username")}


def _all(found: Json, name: str) -> list[Json]:
    value = found.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(found: Any, name: str) -> str:
    value = found.get(name) if isinstance(found, dict) else None
    return value if isinstance(value, str) else ""
