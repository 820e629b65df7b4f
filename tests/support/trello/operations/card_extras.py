"""Further content of a card: attachments, checklists and custom fields."""

from __future__ import annotations

from typing import Any, Final

from tests.support.trello import serializers
from tests.support.trello.action_log import of_card, record
from tests.support.trello.api_errors import ApiError, invalid_value
from tests.support.trello.entities import Attachment, Checklist, Json
from tests.support.trello.world import World, iso, known

NAME_MOST: Final = 256
ATTACHMENTS_MOST: Final = 100
"""Trello's figure of 2017; today it is in the `limits` of the card."""


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
    location = url or f"https://trello.com/1/cards/{card.id}/attachments/{id}/download/{name}"
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


def add_checklist(world: World, card_id: str, by: str, name: str) -> Checklist:
    """Put a checklist on a card."""
    card = world.cards[card_id]
    checklist = Checklist(world.id(), name or "Checklist", card.id)
    card.checklists.append(checklist)
    world.checklists[checklist.id] = checklist
    shown = {"id": checklist.id, "name": checklist.name}
    record(world, "addChecklistToCard", by, of_card(world, card, listed=False, checklist=shown))
    return checklist


def add_item(world: World, checklist: str, by: str, name: str, checked: bool = False) -> Json:
    """Put an item on a checklist."""
    parent = known(world.checklists, checklist)
    if not 1 <= len(name) <= 16384:
        raise invalid_value("name")
    new_item: Json = {
        "id": world.id(), "name": name, "nameData": None, "idChecklist": parent.id,
        "pos": 16384.0 * (len(parent.items) + 1), "state": "complete" if checked else "incomplete",
    }  # fmt: skip
    parent.items.append(new_item)
    card = world.cards[parent.card]
    item = {name: new_item[name] for name in ("id", "name", "state")}
    shown: dict[str, Any] = {"checkItem": item, "checklist": {"id": parent.id, "name": parent.name}}
    record(world, "createCheckItem", by, of_card(world, card, listed=False, **shown))
    return new_item


def checklist_json(world: World, checklist: Checklist) -> Json:
    """Return a checklist."""
    card = world.cards[checklist.card]
    return {
        "id": checklist.id, "name": checklist.name, "idBoard": card.board, "idCard": card.id,
        "pos": 16384.0 * (1 + card.checklists.index(checklist)),
        "checkItems": list(checklist.items),
    }  # fmt: skip


def set_field(world: World, card_id: str, field: str, by: str, value: Json) -> Json:
    """Set a custom field of a card: value is as in `{"text": "x"}` or `{"number": "1"}`."""
    card, definition = world.cards[card_id], known(world.custom_fields, field)
    value_item: Json = {
        "id": world.id(), "idCustomField": definition["id"], "idModel": card.id,
        "modelType": "card", "value": value,
    }  # fmt: skip
    card.fields[definition["id"]] = value_item
    shown = {
        "customField": {"id": field, "name": definition["name"]},
        "customFieldItem": value_item,
    }
    record(world, "updateCustomFieldItem", by, of_card(world, card, listed=False, **shown))
    return value_item


def whole_card(world: World, card_id: str) -> Json:
    """Return a card with all nested resources."""
    card = world.cards[card_id]
    return serializers.card(world, card) | {
        "attachments": [serializers.attachment(entity) for entity in card.attachments],
        "checklists": [checklist_json(world, entity) for entity in card.checklists],
        "customFieldItems": list(card.fields.values()),
        "members": [serializers.member(world.members[id]) for id in card.members],
    }
