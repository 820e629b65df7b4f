"""Boards and their contents."""

from __future__ import annotations

from typing import Any

from draftsman_testing.trello import serializers
from draftsman_testing.trello.api_errors import ApiError, invalid_value, not_found
from draftsman_testing.trello.entities import Card, Json
from draftsman_testing.trello.methods.registry import ApiCall, route
from draftsman_testing.trello.operations import boards, card_extras
from draftsman_testing.trello.paging import MOST, born, newest, number
from draftsman_testing.trello.serializers import only
from draftsman_testing.trello.world import known

FILTERS = ("all", "open", "closed", "visible", "none")


@route("GET", "/boards/{id}")
def get(call: ApiCall) -> Any:
    content = serializers.board(call.world, call.board())
    shown: Json = only(content, call.text("fields"))
    if call.text("lists") not in ("", "none"):
        shown["lists"] = _lists(call, call.text("lists"))
    if call.text("labels") not in ("", "none"):
        shown["labels"] = labels(call)
    return shown


@route("GET", "/boards/{id}/lists")
def lists(call: ApiCall) -> Any:
    return _lists(call, call.text("filter") or "open")


@route("GET", "/boards/{id}/lists/{filter}")
def lists_by(call: ApiCall) -> Any:
    return _lists(call, call.parts["filter"])


def _lists(call: ApiCall, status: str) -> list[Json]:
    board = call.board().id
    if status not in ("all", "open", "closed", "none"):
        raise invalid_value("filter")
    return [
        only(serializers.list_(place), call.text("fields"))
        for place in call.world.lists.values()
        if place.board == board and status in ("all", "closed" if place.closed else "open")
    ]


@route("GET", "/boards/{id}/labels")
def labels(call: ApiCall) -> Any:
    """Return the labels: 50 by default, which is from memory."""
    board = call.board().id
    limit = number(call.args, "limit", 50, MOST)
    entries = [
        serializers.label(label) for label in call.world.labels.values() if label.board == board
    ]
    return entries[:limit]


@route("GET", "/boards/{id}/members")
def members(call: ApiCall) -> Any:
    world = call.world
    return [serializers.member(world.members[id]) for id in sorted(call.board().members)]


@route("GET", "/boards/{id}/memberships")
def memberships(call: ApiCall) -> Any:
    """Return the memberships; the format is from memory."""
    board = call.board()
    return [
        {
            "id": f"5eed{member[4:]}", "idMember": member,
            "unconfirmed": False, "deactivated": False,
            "memberType": "observer" if member in board.observers else "normal",
        }
        for member in sorted(board.members)
    ]  # fmt: skip


@route("GET", "/boards/{id}/customFields")
def custom_fields(call: ApiCall) -> Any:
    """Return the fields with the options of lists; the answer without the Power-Up is unknown."""
    board = call.board().id
    if board in call.world.without_fields:
        raise ApiError(403, "Custom Fields Power-Up is not enabled")
    return [
        definition
        for definition in call.world.custom_fields.values()
        if definition["idModel"] == board
    ]


@route("POST", "/customFields")
def make_field(call: ApiCall) -> Any:
    """Create a custom field (REST API reference: Create a new Custom Field on a Board)."""
    board = call.world.board(call.need("idModel"))
    call.may_see(board.id)
    if board.id in call.world.without_fields:
        raise ApiError(403, "Custom Fields Power-Up is not enabled")
    if call.need("modelType") != "board" or call.need("pos") not in ("top", "bottom"):
        raise invalid_value("modelType")
    options = call.args.get("options") or []
    texts = [option["value"]["text"] for option in options]
    return boards.add_field(call.world, board.id, call.need("name"), call.need("type"), texts)


@route("DELETE", "/customFields/{id}")
def remove_field(call: ApiCall) -> Any:
    field = known(call.world.custom_fields, call.parts["id"])
    call.may_see(field["idModel"])
    boards.delete_field(call.world, field["id"])
    return {"limits": {}}


@route("DELETE", "/boards/{id}")
def remove(call: ApiCall) -> Any:
    boards.delete_board(call.world, call.board().id)
    return {"_value": None}


@route("GET", "/boards/{id}/cards")
def cards(call: ApiCall) -> Any:
    return _cards(call, call.text("filter") or "open")


@route("GET", "/boards/{id}/cards/{filter}")
def cards_by(call: ApiCall) -> Any:
    """Return the cards by a filter, or a single card: the path is the same."""
    status = call.parts["filter"]
    if status in FILTERS:
        return _cards(call, status)
    card = call.world.card(status)
    if card.board != call.board().id:
        raise not_found()
    return show(call, card)


def _cards(call: ApiCall, status: str) -> list[Json]:
    board = call.board().id
    if status not in FILTERS:
        raise invalid_value("filter")
    return shown(call, [card for card in call.world.cards.values() if card.board == board], status)


def shown(call: ApiCall, cards: list[Card], status: str) -> list[Json]:
    """Return the newest 1,000 cards with this status, by the date in the id.

    `open` cards are not archived, but may be in an archived list; `visible` cards are not. They are
    in the order of the board.
    """

    def fits(card: Card) -> bool:
        if status == "visible":
            return not card.closed and not call.world.lists[card.column].closed
        return status in ("all", "closed" if card.closed else "open")

    page = newest(filter(fits, cards), call.args, lambda card: born(card.id), MOST)
    page.sort(key=lambda card: (call.world.lists[card.column].pos, card.pos))
    return [show(call, card) for card in page]


def show(call: ApiCall, card: Card) -> Json:
    """Return a card with the requested nested resources."""
    content = only(serializers.card(call.world, card), call.text("fields"))
    for name in ("attachments", "checklists", "customFieldItems", "members"):
        if call.text(name, "false").lower() not in ("false", "none", ""):
            content[name] = card_extras.whole_card(call.world, card.id)[name]
    return dict(content)


@route("POST", "/boards")
def make(call: ApiCall) -> Any:
    return serializers.board(call.world, boards.add_board(call.world, call.need("name"), {call.by}))


@route("POST", "/boards/{id}/lists")
def make_list(call: ApiCall) -> Any:
    return serializers.list_(
        boards.add_list(call.world, call.board().id, call.need("name"), call.by)
    )


@route("POST", "/boards/{id}/labels")
def make_label(call: ApiCall) -> Any:
    color = None if call.text("color") in ("", "null") else call.text("color")
    label = boards.add_label(call.world, call.board().id, call.text("name"), color, call.by)
    return serializers.label(label)


@route("GET", "/boards/{id}/labels/{idLabel}")
def one_label(call: ApiCall) -> Any:
    label = known(call.world.labels, call.parts["idLabel"])
    if label.board != call.board().id:
        raise not_found()
    return serializers.label(label)
