"""Cards as py-trello objects with the fields that label jobs and card updates use.

`Card.from_json` needs fifteen fields of each card, several times the data of a poll, and
`Card.fetch` and `TrelloClient.get_card` read the board, the list or the custom field definitions in
further requests. So the fields are read with `fetch_json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from trello import Card

from draftsman_bots.json_fields import nested, objects, string
from draftsman_bots.trello.ids import is_id, parse_time
from draftsman_bots.trello.records.board import FieldUse
from draftsman_bots.trello.transport.api_errors import unconfirmed

if TYPE_CHECKING:
    from draftsman_bots.trello.transport.client import Trello


CARD_FIELDS: Final = "idBoard,idList,idLabels,closed,dateLastActivity"


async def read_card(trello: Trello, id: str) -> Card:
    """Return a card with its CARD_FIELDS; raises Failure."""
    data = await trello.get(f"/cards/{id}", fields=CARD_FIELDS)
    if not isinstance(data, dict):
        raise unconfirmed(f"GET /cards/{id}: invalid reply", writes=False)
    return parse_card(trello, id, data)


def parse_card(trello: Trello, id: str, fields: dict[str, Any]) -> Card:
    """Return a card with the CARD_FIELDS of a JSON object; a missing field is empty."""
    card = trello.card(id)
    labels = fields.get("idLabels")
    card.idBoard = string(fields, "idBoard")
    card.idList = string(fields, "idList")
    card.idLabels = [label for label in labels if is_id(label)] if isinstance(labels, list) else []
    card.closed = fields.get("closed") is True
    card.dateLastActivity = parse_time(fields.get("dateLastActivity"))
    return card


# Custom fields of a board, with the types that draftsman writes.
#
# Documented in the guide "Getting started with custom fields": a value is text even for a number,
# and a list has the id of an option. Without the Power-Up, Trello refuses the calls or returns no
# fields.


TYPES: Final[Mapping[FieldUse, tuple[str, ...]]] = {
    FieldUse.STATUS: ("list", "text"),
    FieldUse.COST: ("number", "text"),
}
"""Types of the field for each use; the first is preferred."""


@dataclass(frozen=True, slots=True)
class CustomField:
    """A custom field of a board; `options` has the texts of a list by id."""

    id: str
    name: str
    type: str
    options: Mapping[str, str] = field(default_factory=dict)

    def option(self, text: str) -> str | None:
        """Return the id of the option with a text, in any case."""
        key = text.casefold()
        matching = [id for id, option in self.options.items() if option.strip().casefold() == key]
        return matching[0] if matching else None


async def fetch_fields(trello: Trello, board: str) -> list[CustomField]:
    """Return the custom fields of a board; raises Failure."""
    page = await trello.get(f"/boards/{board}/customFields")
    fields = [field for field in page if isinstance(field, dict)] if isinstance(page, list) else []
    return [_field(field) for field in fields if is_id(field.get("id"))]


async def fetch_values(trello: Trello, card: str) -> dict[str, Any]:
    """Return the values of a card by the id of their field; raises Failure."""
    page = await trello.get(f"/cards/{card}/customFieldItems")
    items = [item for item in page if isinstance(item, dict)] if isinstance(page, list) else []
    return {
        string(item, "idCustomField"): item.get("idValue") or item.get("value") for item in items
    }


async def set_value(trello: Trello, card: str, field: CustomField, value: Any) -> None:
    """Set a custom field of a card; raises Failure. `value` is as in `fetch_values`."""
    path = f"/cards/{card}/customField/{field.id}/item"
    if field.type == "list":
        await trello.put(path, idValue=value)
    else:
        await trello.put(path, value=value)


def _field(field: dict[str, Any]) -> CustomField:
    options = {
        string(option, "id"): string(nested(option, "value"), "text")
        for option in objects(field, "options")
    }
    return CustomField(string(field, "id"), string(field, "name"), string(field, "type"), options)
