"""Cards."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any, Final

from draftsman_testing.trello.action_log import LISTED
from draftsman_testing.trello.api_errors import ApiError, invalid_value, not_found
from draftsman_testing.trello.methods.boards import show
from draftsman_testing.trello.methods.registry import ApiCall, route
from draftsman_testing.trello.operations import card_extras, cards, labels
from draftsman_testing.trello.serializers import board, list_, member
from draftsman_testing.trello.world import iso, known

FIELDS: Final = {"name": "name", "desc": "desc", "due": "due", "dueComplete": "due_complete",
                 "closed": "closed", "pos": "pos"}  # fmt: skip


@route("GET", "/cards/{id}")
def get(call: ApiCall) -> Any:
    card = call.card()
    content = show(call, card)
    if call.text("fields") == "limits":
        content["limits"] = {"checklists": {"perCard": card_extras.checklist_limit(card)}}
    if call.text("board", "false").lower() == "true":
        content["board"] = board(call.world, call.world.boards[card.board])
    if call.text("list", "false").lower() == "true":
        content["list"] = list_(call.world.lists[card.column])
    if types := call.text("actions"):
        content["actions"] = [
            action
            for action in reversed(call.world.on_card[card.id].values())
            if action["type"] in LISTED and action["type"] in types.split(",")
        ][:50]
    return content


@route("POST", "/cards")
def make(call: ApiCall) -> Any:
    target_list = known(call.world.lists, call.need("idList"))
    call.may_see(target_list.board)
    if source := call.text("idCardSource"):
        call.may_see(call.world.card(source).board)
        name = call.text("name") or None
        card = cards.copy_card(
            call.world, call.world.card(source).id, target_list.id, call.by, name
        )
    else:
        card = cards.make(
            call.world,
            target_list.id,
            call.text("name"),
            call.by,
            desc=call.text("desc"),
            label_ids=call.ids("idLabels"),
            members=[known(call.world.members, id).id for id in call.ids("idMembers")],
        )
    return show(call, card)


@route("PUT", "/cards/{id}")
def change(call: ApiCall) -> Any:
    """Change the given fields; a list of another board requires idBoard."""
    card = call.card()
    if "idBoard" in call.args or "idList" in call.args:
        _move(call, call.text("idBoard") or card.board, call.text("idList"))
    if "idLabels" in call.args:
        _relabel(call, call.ids("idLabels"))
    for name in FIELDS:
        if name in call.args:
            _set(call, name, call.args[name])
    return show(call, card)


@route("PUT", "/cards/{id}/idList")
def to_list(call: ApiCall) -> Any:
    _move(call, call.card().board, call.need("value"))
    return show(call, call.card())


@route("PUT", "/cards/{id}/idBoard")
def to_board(call: ApiCall) -> Any:
    _move(call, call.need("value"), call.text("idList"))
    return show(call, call.card())


def _move(call: ApiCall, board_id: str, list_id: str) -> None:
    """Move the card; without a list, to the first open list of the board."""
    world = call.world
    card = call.card()
    target = world.board(board_id).id
    call.may_see(target)
    if not list_id:
        places = [
            place.id for place in world.lists.values() if place.board == target and not place.closed
        ]
        if not places:
            raise invalid_value("idBoard")
        list_id = places[0]
    cards.move_to_board(world, card.id, target, list_id, call.by)


def _relabel(call: ApiCall, label_ids: list[str]) -> None:
    card = call.card()
    labels.check(call.world, card.board, label_ids)
    for id in [label for label in card.labels if label not in label_ids]:
        labels.take(call.world, card.id, id, call.by)
    for id in [label for label in label_ids if label not in card.labels]:
        labels.put(call.world, card.id, id, call.by)


def _set(call: ApiCall, name: str, given: Any) -> None:
    value = given
    if name in ("closed", "dueComplete"):
        if str(given).lower() not in ("true", "false"):
            raise invalid_value(name)
        value = str(given).lower() == "true"
    elif name == "pos":
        value = {"top": 1.0, "bottom": 1e9}.get(str(given)) or _positive(given)
    elif name in ("name", "desc"):
        value = str(given)
    elif name == "due":
        value = _date(given)
    cards.change(call.world, call.card().id, call.by, **{FIELDS[name]: value})


def _date(given: Any) -> str | None:
    """Return a date as Trello writes it; null and an empty text remove it, as py-trello does."""
    if given in (None, "", "null"):
        return None
    try:
        when = datetime.fromisoformat(str(given))
    except ValueError:
        raise invalid_value("due") from None
    return iso((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())


def _positive(given: Any) -> float:
    try:
        value = float(given)
    except (TypeError, ValueError):
        raise invalid_value("pos") from None
    if not 0 < value < math.inf:
        raise invalid_value("pos")
    return value


@route("POST", "/cards/{id}/idLabels")
def put_label(call: ApiCall) -> Any:
    return labels.put(call.world, call.card().id, call.need("value"), call.by).labels


@route("DELETE", "/cards/{id}/idLabels/{idLabel}")
def take_label(call: ApiCall) -> Any:
    labels.take(call.world, call.card().id, call.parts["idLabel"], call.by)
    return {"_value": None}


@route("POST", "/cards/{id}/idMembers")
def join(call: ApiCall) -> Any:
    person = known(call.world.members, call.need("value"))
    cards.join(call.world, call.card().id, person.id, call.by)
    return [member(call.world.members[id]) for id in call.card().members]


@route("GET", "/cards/{id}/members")
def members(call: ApiCall) -> Any:
    return [member(call.world.members[id]) for id in call.card().members]


@route("GET", "/cards/{id}/customFieldItems")
def fields(call: ApiCall) -> Any:
    return list(call.card().fields.values())


@route("PUT", "/card/{id}/customField/{idCustomField}/item")
@route("PUT", "/cards/{id}/customField/{idCustomField}/item")
def set_custom_field(call: ApiCall) -> Any:
    """Set a field; py-trello writes `/card`. The answer without the Power-Up is unknown."""
    if call.card().board in call.world.without_fields:
        raise ApiError(403, "Custom Fields Power-Up is not enabled")
    field = call.parts["idCustomField"]
    option = call.args.get("idValue")
    value = call.args.get("value")
    return card_extras.set_field(call.world, call.card().id, field, call.by, value, option)


@route("GET", "/cards/{id}/pluginData")
def plugin_data(call: ApiCall) -> Any:
    call.card()
    return []


@route("DELETE", "/cards/{id}")
def delete(call: ApiCall) -> Any:
    cards.delete(call.world, call.card().id, call.by)
    return {"limits": {}}


@route("PUT", "/cards/{id}/{field}")
def set_field(call: ApiCall) -> Any:
    if call.parts["field"] not in FIELDS:
        raise not_found()
    _set(call, call.parts["field"], call.args.get("value"))
    return show(call, call.card())
