"""Lists."""

from __future__ import annotations

from typing import Any

from tests.support.trello import serializers
from tests.support.trello.api_errors import invalid_value
from tests.support.trello.entities import List
from tests.support.trello.methods.boards import FILTERS, shown
from tests.support.trello.methods.registry import Ask, route
from tests.support.trello.operations import boards
from tests.support.trello.world import known


def _found(ask: Ask) -> List:
    found = known(ask.world.lists, ask.parts["id"])
    ask.may_see(found.board)
    return found


@route("GET", "/lists/{id}")
def one(ask: Ask) -> Any:
    return serializers.only(serializers.list_(_found(ask)), ask.text("fields"))


@route("GET", "/lists/{id}/cards")
def cards(ask: Ask) -> Any:
    place, wanted = _found(ask).id, ask.text("filter") or "open"
    if wanted not in FILTERS:
        raise invalid_value("filter")
    return shown(ask, [card for card in ask.world.cards.values() if card.column == place], wanted)


@route("POST", "/lists")
def make(ask: Ask) -> Any:
    board = ask.world.board(ask.need("idBoard"))
    ask.may_see(board.id)
    return serializers.list_(boards.add_list(ask.world, board.id, ask.need("name"), ask.by))


@route("PUT", "/lists/{id}/closed")
def close(ask: Ask) -> Any:
    found = _found(ask)
    boards.close_list(ask.world, found.id, ask.by, ask.flag("value"))
    return serializers.list_(found)
