"""Labels of boards."""

from __future__ import annotations

from typing import Any

from tests.support.trello import serializers
from tests.support.trello.api_errors import invalid_value
from tests.support.trello.entities import Label
from tests.support.trello.methods.registry import Ask, route
from tests.support.trello.operations import boards
from tests.support.trello.world import known


def _found(ask: Ask) -> Label:
    label = known(ask.world.labels, ask.parts["id"])
    ask.may_see(label.board)
    return label


@route("GET", "/labels/{id}")
def one(ask: Ask) -> Any:
    return serializers.label(_found(ask))


@route("POST", "/labels")
def make(ask: Ask) -> Any:
    board = ask.world.board(ask.need("idBoard"))
    ask.may_see(board.id)
    if "name" not in ask.args:
        raise invalid_value("name")
    color = None if ask.text("color") in ("", "null") else ask.text("color")
    return serializers.label(boards.add_label(ask.world, board.id, ask.text("name"), color, ask.by))


@route("PUT", "/labels/{id}")
def rename(ask: Ask) -> Any:
    return serializers.label(
        boards.rename_label(ask.world, _found(ask).id, ask.text("name"), ask.by)
    )


@route("DELETE", "/labels/{id}")
def delete(ask: Ask) -> Any:
    boards.delete_label(ask.world, _found(ask).id, ask.by)
    return {"limits": {}}
