"""Checklists of cards."""

from __future__ import annotations

from typing import Any

from draftsman_testing.trello.entities import Checklist
from draftsman_testing.trello.methods.registry import ApiCall, route
from draftsman_testing.trello.operations import card_extras
from draftsman_testing.trello.world import known


@route("GET", "/cards/{id}/checklists")
def checklists(call: ApiCall) -> Any:
    return [
        card_extras.checklist_json(call.world, checklist) for checklist in call.card().checklists
    ]


@route("POST", "/cards/{id}/checklists")
def make(call: ApiCall) -> Any:
    checklist = card_extras.add_checklist(call.world, call.card().id, call.by, call.text("name"))
    return card_extras.checklist_json(call.world, checklist)


@route("POST", "/checklists/{id}/checkItems")
def add(call: ApiCall) -> Any:
    return card_extras.add_item(
        call.world, _checklist(call).id, call.by, call.text("name"), call.flag("checked")
    )


@route("GET", "/checklists/{id}")
def get(call: ApiCall) -> Any:
    return card_extras.checklist_json(call.world, _checklist(call))


@route("PUT", "/checklists/{id}")
def change(call: ApiCall) -> Any:
    checklist = _checklist(call)
    if "name" in call.args:
        card_extras.rename_checklist(call.world, checklist.id, call.by, call.text("name"))
    return card_extras.checklist_json(call.world, checklist)


@route("DELETE", "/checklists/{id}")
def remove(call: ApiCall) -> Any:
    card_extras.remove_checklist(call.world, _checklist(call).id, call.by)
    return {"limits": {}}


@route("PUT", "/cards/{id}/checkItem/{idCheckItem}")
def set_item(call: ApiCall) -> Any:
    """Check or uncheck an item (REST API reference: Update a checkItem on a Card)."""
    card = call.card().id
    return card_extras.set_item_state(
        call.world, card, call.parts["idCheckItem"], call.by, call.need("state")
    )


def _checklist(call: ApiCall) -> Checklist:
    checklist = known(call.world.checklists, call.parts["id"])
    call.may_see(call.world.cards[checklist.card].board)
    return checklist
