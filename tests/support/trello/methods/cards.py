"""Cards."""

from __future__ import annotations

import math
from typing import Any, Final

from tests.support.trello.action_log import LISTED
from tests.support.trello.api_errors import invalid_value, not_found
from tests.support.trello.methods.boards import show
from tests.support.trello.methods.registry import Ask, route
from tests.support.trello.operations import cards, labels
from tests.support.trello.serializers import board, list_, member
from tests.support.trello.world import known

FIELDS: Final = {"name": "name", "desc": "desc", "due": "due", "dueComplete": "due_complete",
                 "closed": "closed", "pos": "pos"}  # fmt: skip


@route("GET", "/cards/{id}")
def one(ask: Ask) -> Any:
    card = ask.card()
    found = show(ask, card)
    if ask.text("board", "false").lower() == "true":
        found["board"] = board(ask.world, ask.world.boards[card.board])
    if ask.text("list", "false").lower() == "true":
        found["list"] = list_(ask.world.lists[card.column])
    if wanted := ask.text("actions"):
        found["actions"] = [
            action
            for action in reversed(ask.world.on_card[card.id].values())
            if action["type"] in LISTED and action["type"] in wanted.split(",")
        ][:50]
    return found


@route("POST", "/cards")
def make(ask: Ask) -> Any:
    place = known(ask.world.lists, ask.need("idList"))
    ask.may_see(place.board)
    if source := ask.text("idCardSource"):
        ask.may_see(ask.world.card(source).board)
        name = ask.text("name") or None
        made = cards.copy_card(ask.world, ask.world.card(source).id, place.id, ask.by, name)
    else:
        made = cards.make(
            ask.world,
            place.id,
            ask.text("name"),
            ask.by,
            desc=ask.text("desc"),
            label_ids=ask.ids("idLabels"),
            members=[known(ask.world.members, id).id for id in ask.ids("idMembers")],
        )
    return show(ask, made)


@route("PUT", "/cards/{id}")
def change(ask: Ask) -> Any:
    """Change whatever is named; a list of another board is refused, unless idBoard says so too."""
    card = ask.card()
    if "idBoard" in ask.args or "idList" in ask.args:
        _move(ask, ask.text("idBoard") or card.board, ask.text("idList"))
    if "idLabels" in ask.args:
        _relabel(ask, ask.ids("idLabels"))
    for name in FIELDS:
        if name in ask.args:
            _set(ask, name, ask.args[name])
    return show(ask, card)


@route("PUT", "/cards/{id}/idList")
def to_list(ask: Ask) -> Any:
    _move(ask, ask.card().board, ask.need("value"))
    return show(ask, ask.card())


@route("PUT", "/cards/{id}/idBoard")
def to_board(ask: Ask) -> Any:
    _move(ask, ask.need("value"), ask.text("idList"))
    return show(ask, ask.card())


def _move(ask: Ask, board_id: str, list_id: str) -> None:
    """Move the card; without a list it goes to the first open one of the board."""
    world, card = ask.world, ask.card()
    target = world.board(board_id).id
    ask.may_see(target)
    if not list_id:
        places = [one.id for one in world.lists.values() if one.board == target and not one.closed]
        if not places:
            raise invalid_value("idBoard")
        list_id = places[0]
    cards.move_to_board(world, card.id, target, list_id, ask.by)


def _relabel(ask: Ask, wanted: list[str]) -> None:
    card = ask.card()
    labels.check(ask.world, card.board, wanted)
    for id in [one for one in card.labels if one not in wanted]:
        labels.take(ask.world, card.id, id, ask.by)
    for id in [one for one in wanted if one not in card.labels]:
        labels.put(ask.world, card.id, id, ask.by)


def _set(ask: Ask, name: str, said: Any) -> None:
    value = said
    if name in ("closed", "dueComplete"):
        if str(said).lower() not in ("true", "false"):
            raise invalid_value(name)
        value = str(said).lower() == "true"
    elif name == "pos":
        value = {"top": 1.0, "bottom": 1e9}.get(str(said)) or _positive(said)
    elif name in ("name", "desc"):
        value = str(said)
    cards.change(ask.world, ask.card().id, ask.by, **{FIELDS[name]: value})


def _positive(said: Any) -> float:
    try:
        value = float(said)
    except (TypeError, ValueError):
        raise invalid_value("pos") from None
    if not 0 < value < math.inf:
        raise invalid_value("pos")
    return value


@route("POST", "/cards/{id}/idLabels")
def put_label(ask: Ask) -> Any:
    return labels.put(ask.world, ask.card().id, ask.need("value"), ask.by).labels


@route("DELETE", "/cards/{id}/idLabels/{idLabel}")
def take_label(ask: Ask) -> Any:
    labels.take(ask.world, ask.card().id, ask.parts["idLabel"], ask.by)
    return {"_value": None}


@route("POST", "/cards/{id}/idMembers")
def join(ask: Ask) -> Any:
    who = known(ask.world.members, ask.need("value"))
    cards.join(ask.world, ask.card().id, who.id, ask.by)
    return [member(ask.world.members[id]) for id in ask.card().members]


@route("GET", "/cards/{id}/members")
def members(ask: Ask) -> Any:
    return [member(ask.world.members[id]) for id in ask.card().members]


@route("GET", "/cards/{id}/customFieldItems")
def fields(ask: Ask) -> Any:
    return list(ask.card().fields.values())


@route("GET", "/cards/{id}/pluginData")
def plugin_data(ask: Ask) -> Any:
    ask.card()
    return []


@route("DELETE", "/cards/{id}")
def delete(ask: Ask) -> Any:
    cards.delete(ask.world, ask.card().id, ask.by)
    return {"limits": {}}


@route("PUT", "/cards/{id}/{field}")
def set_field(ask: Ask) -> Any:
    if ask.parts["field"] not in FIELDS:
        raise not_found()
    _set(ask, ask.parts["field"], ask.args.get("value"))
    return show(ask, ask.card())
