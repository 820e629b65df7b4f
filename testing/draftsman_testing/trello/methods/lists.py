"""Lists."""

from __future__ import annotations

from typing import Any

from draftsman_testing.trello import serializers
from draftsman_testing.trello.api_errors import invalid_value
from draftsman_testing.trello.entities import List
from draftsman_testing.trello.methods.boards import FILTERS, shown
from draftsman_testing.trello.methods.registry import ApiCall, route
from draftsman_testing.trello.operations import boards
from draftsman_testing.trello.world import known


def _found(call: ApiCall) -> List:
    target_list = known(call.world.lists, call.parts["id"])
    call.may_see(target_list.board)
    return target_list


@route("GET", "/lists/{id}")
def get(call: ApiCall) -> Any:
    return serializers.only(serializers.list_(_found(call)), call.text("fields"))


@route("GET", "/lists/{id}/cards")
def cards(call: ApiCall) -> Any:
    list_id = _found(call).id
    status = call.text("filter") or "open"
    if status not in FILTERS:
        raise invalid_value("filter")
    return shown(
        call, [card for card in call.world.cards.values() if card.column == list_id], status
    )


@route("POST", "/lists")
def make(call: ApiCall) -> Any:
    board = call.world.board(call.need("idBoard"))
    call.may_see(board.id)
    return serializers.list_(boards.add_list(call.world, board.id, call.need("name"), call.by))


@route("PUT", "/lists/{id}/closed")
def close(call: ApiCall) -> Any:
    target_list = _found(call)
    boards.close_list(call.world, target_list.id, call.by, call.flag("value"))
    return serializers.list_(target_list)
