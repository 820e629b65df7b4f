"""Checklists of cards."""

from __future__ import annotations

from typing import Any

from tests.support.trello.methods.registry import ApiCall, route
from tests.support.trello.operations import card_extras
from tests.support.trello.world import known


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
    checklist = known(call.world.checklists, call.parts["id"])
    call.may_see(call.world.cards[checklist.card].board)
    return card_extras.add_item(
        call.world, checklist.id, call.by, call.text("name"), call.flag("checked")
    )
