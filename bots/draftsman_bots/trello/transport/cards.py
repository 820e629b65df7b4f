"""Cards as py-trello objects with the fields that label jobs and card updates use.

`Card.from_json` needs fifteen fields of each card, several times the data of a poll, and
`Card.fetch` and `TrelloClient.get_card` read the board, the list or the custom field definitions in
further requests. So the fields are read with `fetch_json`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trello import Card

from draftsman_bots.json_fields import string
from draftsman_bots.trello.ids import is_id, parse_time
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
    card.idBoard, card.idList = string(fields, "idBoard"), string(fields, "idList")
    card.idLabels = [label for label in labels if is_id(label)] if isinstance(labels, list) else []
    card.closed = fields.get("closed") is True
    card.dateLastActivity = parse_time(fields.get("dateLastActivity"))
    return card
