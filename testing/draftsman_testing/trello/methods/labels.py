"""Labels of boards."""

from __future__ import annotations

from typing import Any

from draftsman_testing.trello import serializers
from draftsman_testing.trello.api_errors import invalid_value
from draftsman_testing.trello.entities import Label
from draftsman_testing.trello.methods.registry import ApiCall, route
from draftsman_testing.trello.operations import boards
from draftsman_testing.trello.world import known


def _found(call: ApiCall) -> Label:
    label = known(call.world.labels, call.parts["id"])
    call.may_see(label.board)
    return label


@route("GET", "/labels/{id}")
def get(call: ApiCall) -> Any:
    return serializers.label(_found(call))


@route("POST", "/labels")
def make(call: ApiCall) -> Any:
    board = call.world.board(call.need("idBoard"))
    call.may_see(board.id)
    if "name" not in call.args:
        raise invalid_value("name")
    color = None if call.text("color") in ("", "null") else call.text("color")
    return serializers.label(
        boards.add_label(call.world, board.id, call.text("name"), color, call.by)
    )


@route("PUT", "/labels/{id}")
def rename(call: ApiCall) -> Any:
    return serializers.label(
        boards.rename_label(call.world, _found(call).id, call.text("name"), call.by)
    )


@route("DELETE", "/labels/{id}")
def delete(call: ApiCall) -> Any:
    boards.delete_label(call.world, _found(call).id, call.by)
    return {"limits": {}}
