"""Further content of a card: attachments, checklists and custom fields."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote

from draftsman_testing.trello import serializers
from draftsman_testing.trello.action_log import of_card, record
from draftsman_testing.trello.api_errors import ApiError, invalid_value, not_found
from draftsman_testing.trello.entities import Attachment, Card, Checklist, Json
from draftsman_testing.trello.world import World, iso, known

NAME_MOST: Final = 256
ATTACHMENTS_MOST: Final = 100
"""Trello's figure of 2017; today it is in the `limits` of the card."""
CHECKLISTS_MOST: Final = 500
ITEMS_MOST: Final = 200
"""`disableAt` of `checklists.perCard` and `checkItems.perChecklist` in the example of
developer.atlassian.com/cloud/trello/guides/rest-api/limits (24 June 2025), where limits may vary.
The status and text of the error are from memory."""


def attach(
    world: World,
    card_id: str,
    by: str,
    name: str,
    *,
    data: bytes | None = None,
    url: str = "",
    mime: str = "",
    max_bytes: int,
) -> Attachment:
    """Attach a file or an address.

    The status and the text of the errors for a large file and for too many attachments are from
    memory.
    """
    card = world.cards[card_id]
    if len(name) > NAME_MOST:
        raise invalid_value("name")
    if data is not None and len(data) > max_bytes:
        raise ApiError(413, "Payload Too Large")
    if len(card.attachments) >= ATTACHMENTS_MOST:
        raise ApiError(400, "Attachment limit exceeded")
    if data is None and not url.startswith(("http://", "https://")):
        raise invalid_value("url")
    id = world.id()
    file = quote(name.rpartition("/")[2])  # how Trello names the file in the address is unknown
    location = url or f"https://trello.com/1/cards/{card.id}/attachments/{id}/download/{file}"
    attachment = Attachment(id, name or url, location, by, iso(world.moment()), data, mime)
    card.attachments.append(attachment)
    data_shown = {"id": id, "name": attachment.name, "url": location}
    record(world, "addAttachmentToCard", by, of_card(world, card, attachment=data_shown))
    return attachment


def detach(world: World, card_id: str, id: str, by: str) -> None:
    """Remove an attachment."""
    card = world.cards[card_id]
    attachment = known({attachment.id: attachment for attachment in card.attachments}, id)
    card.attachments.remove(attachment)
    shown = {"id": id, "name": attachment.name}
    record(world, "deleteAttachmentFromCard", by, of_card(world, card, attachment=shown))


def checklist_limit(card: Card) -> Json:
    """Return the limit of the checklists of a card (guides/rest-api/limits)."""
    is_reached = len(card.checklists) >= CHECKLISTS_MOST
    status = "disabled" if is_reached else "ok"
    return {"status": status, "disableAt": CHECKLISTS_MOST, "warnAt": CHECKLISTS_MOST * 9 // 10}


def add_checklist(world: World, card_id: str, by: str, name: str) -> Checklist:
    """Put a checklist on a card. Its name has up to 16,384 characters (REST API reference)."""
    card = world.cards[card_id]
    if len(name) > 16384:
        raise invalid_value("name")
    if len(card.checklists) >= CHECKLISTS_MOST:
        raise ApiError(400, "Checklist limit exceeded")
    checklist = Checklist(world.id(), name or "Checklist", card.id)
    card.checklists.append(checklist)
    world.checklists[checklist.id] = checklist
    data = of_card(world, card, listed=False, checklist=_brief(checklist))
    record(world, "addChecklistToCard", by, data)
    return checklist


def rename_checklist(world: World, id: str, by: str, name: str) -> Checklist:
    """Give a checklist another name."""
    checklist = known(world.checklists, id)
    if not 1 <= len(name) <= 16384:
        raise invalid_value("name")
    old = checklist.name
    checklist.name = name
    card = world.cards[checklist.card]
    data = of_card(world, card, listed=False, checklist=_brief(checklist), old={"name": old})
    record(world, "updateChecklist", by, data)
    return checklist


def remove_checklist(world: World, id: str, by: str) -> None:
    """Remove a checklist from its card."""
    checklist = known(world.checklists, id)
    card = world.cards[checklist.card]
    card.checklists.remove(checklist)
    del world.checklists[id]
    data = of_card(world, card, listed=False, checklist=_brief(checklist))
    record(world, "removeChecklistFromCard", by, data)


def add_item(world: World, checklist: str, by: str, name: str, checked: bool = False) -> Json:
    """Put an item on a checklist. Its name has 1 to 16,384 characters (REST API reference)."""
    parent = known(world.checklists, checklist)
    if not 1 <= len(name) <= 16384:
        raise invalid_value("name")
    if len(parent.items) >= ITEMS_MOST:
        raise ApiError(400, "CheckItem limit exceeded")
    new_item: Json = {
        "id": world.id(), "name": name, "nameData": None, "idChecklist": parent.id,
        "pos": 16384.0 * (len(parent.items) + 1), "state": "complete" if checked else "incomplete",
    }  # fmt: skip
    parent.items.append(new_item)
    _record_item(world, parent, new_item, "createCheckItem", by)
    return new_item


def set_item_state(world: World, card_id: str, item: str, by: str, state: str) -> Json:
    """Check or uncheck an item: `updateCheckItemStateOnCard`, one of the included types."""
    if state not in ("complete", "incomplete"):
        raise invalid_value("state")
    for checklist in world.cards[card_id].checklists:
        for entry in checklist.items:
            if entry["id"] == item:
                if entry["state"] != state:
                    entry["state"] = state
                    _record_item(world, checklist, entry, "updateCheckItemStateOnCard", by)
                return entry
    return known({}, item)


def _record_item(world: World, parent: Checklist, item: Json, kind: str, by: str) -> None:
    shown = {name: item[name] for name in ("id", "name", "state")}
    about: dict[str, Any] = {"checkItem": shown, "checklist": _brief(parent)}
    record(world, kind, by, of_card(world, world.cards[parent.card], listed=False, **about))


def _brief(checklist: Checklist) -> Json:
    return {"id": checklist.id, "name": checklist.name}


def checklist_json(world: World, checklist: Checklist) -> Json:
    """Return a checklist."""
    card = world.cards[checklist.card]
    return {
        "id": checklist.id, "name": checklist.name, "idBoard": card.board, "idCard": card.id,
        "pos": 16384.0 * (1 + card.checklists.index(checklist)),
        "checkItems": list(checklist.items),
    }  # fmt: skip


def set_field(
    world: World, card_id: str, field: str, by: str, value: Any, option: str | None = None
) -> Json:
    """Set a custom field of a card: `{"text": "x"}`, `{"number": "1"}`, or an `option` of a list.

    The guide "Getting started with custom fields" (26 January 2026): values are text even for
    numbers, dates (`{"date": "2018-03-13T16:00:00.000Z"}`) and checkboxes (`{"checked": "true"}`),
    the API validates them against the type of the field, and a list has an `idValue` and no
    `value`. The text of the error is from memory.
    """
    card = world.cards[card_id]
    definition = known(world.custom_fields, field)
    if definition["idModel"] != card.board:
        raise not_found()
    _check_value(definition, value, option)
    value_item: Json = {
        "id": world.id(), "idCustomField": definition["id"], "idModel": card.id,
        "modelType": "card", "value": value,
    }  # fmt: skip
    if option is not None:
        value_item["idValue"] = option
    card.fields[definition["id"]] = value_item
    shown = {
        "customField": {"id": field, "name": definition["name"]},
        "customFieldItem": value_item,
    }
    record(world, "updateCustomFieldItem", by, of_card(world, card, listed=False, **shown))
    return value_item


_VALUES: Final = {
    "number": r"-?\d+(\.\d+)?",
    "checkbox": "true|false",
    "date": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
}
"""Patterns of the values of types, as Trello returns them."""


def _check_value(definition: Json, value: Any, option: str | None) -> None:
    """Raise ApiError unless a value fits its field."""
    kind = definition["type"]
    if kind == "list":
        options = [entry["id"] for entry in definition["options"]]
        fits = value is None and option in options
    else:
        key = "checked" if kind == "checkbox" else kind
        text = value.get(key) if isinstance(value, dict) and len(value) == 1 else None
        fits = option is None and isinstance(text, str)
        if fits and kind in _VALUES:
            fits = re.fullmatch(_VALUES[kind], str(text)) is not None
    if not fits:
        raise ApiError(400, "Invalid custom field item value.")


def whole_card(world: World, card_id: str) -> Json:
    """Return a card with all nested resources."""
    card = world.cards[card_id]
    return serializers.card(world, card) | {
        "attachments": [serializers.attachment(entity) for entity in card.attachments],
        "checklists": [checklist_json(world, entity) for entity in card.checklists],
        "customFieldItems": list(card.fields.values()),
        "members": [serializers.member(world.members[id]) for id in card.members],
    }
