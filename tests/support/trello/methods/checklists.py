"""Checklists of cards."""

from __future__ import annotations

from typing import Any

from tests.support.trello.methods.registry import Ask, route
from tests.support.trello.operations import card_extras
from tests.support.trello.world import known


@route("GET", "/cards/{id}/checklists")
def checklists(ask: Ask) -> Any:
    return [card_extras.checklist_json(ask.world, one) for one in ask.card().checklists]


@route("POST", "/cards/{id}/checklists")
def make(ask: Ask) -> Any:
    made = card_extras.add_checklist(ask.world, ask.card().id, ask.by, ask.text("name"))
    return card_extras.checklist_json(ask.world, made)


@route("POST", "/checklists/{id}/checkItems")
def add(ask: Ask) -> Any:
    found = known(ask.world.checklists, ask.parts["id"])
    ask.may_see(ask.world.cards[found.card].board)
    return card_extras.add_item(ask.world, found.id, ask.by, ask.text("name"), ask.flag("checked"))
