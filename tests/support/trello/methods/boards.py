"""Boards and what is on them."""

from __future__ import annotations

from typing import Any

from tests.support.trello import serializers
from tests.support.trello.api_errors import invalid_value, not_found
from tests.support.trello.entities import Card, Json
from tests.support.trello.methods.registry import Ask, route
from tests.support.trello.operations import boards, card_extras
from tests.support.trello.paging import MOST, born, newest, number
from tests.support.trello.serializers import only
from tests.support.trello.world import known

FILTERS = ("all", "open", "closed", "visible", "none")


@route("GET", "/boards/{id}")
def one(ask: Ask) -> Any:
    found = serializers.board(ask.world, ask.board())
    shown: Json = only(found, ask.text("fields"))
    if ask.text("lists") not in ("", "none"):
        shown["lists"] = _lists(ask, ask.text("lists"))
    if ask.text("labels") not in ("", "none"):
        shown["labels"] = labels(ask)
    return shown


@route("GET", "/boards/{id}/lists")
def lists(ask: Ask) -> Any:
    return _lists(ask, ask.text("filter") or "open")


@route("GET", "/boards/{id}/lists/{filter}")
def lists_by(ask: Ask) -> Any:
    return _lists(ask, ask.parts["filter"])


def _lists(ask: Ask, wanted: str) -> list[Json]:
    board = ask.board().id
    if wanted not in ("all", "open", "closed", "none"):
        raise invalid_value("filter")
    return [
        only(serializers.list_(one), ask.text("fields"))
        for one in ask.world.lists.values()
        if one.board == board and wanted in ("all", "closed" if one.closed else "open")
    ]


@route("GET", "/boards/{id}/labels")
def labels(ask: Ask) -> Any:
    """Return the labels: 50 unless it is said, which is from memory."""
    board, most = ask.board().id, number(ask.args, "limit", 50, MOST)
    found = [serializers.label(one) for one in ask.world.labels.values() if one.board == board]
    return found[:most]


@route("GET", "/boards/{id}/members")
def members(ask: Ask) -> Any:
    world = ask.world
    return [serializers.member(world.members[id]) for id in sorted(ask.board().members)]


@route("GET", "/boards/{id}/memberships")
def memberships(ask: Ask) -> Any:
    """Return who is a member and how; the shape is from memory."""
    found = ask.board()
    return [
        {
            "id": f"5eed{one[4:]}", "idMember": one, "unconfirmed": False, "deactivated": False,
            "memberType": "observer" if one in found.observers else "normal",
        }
        for one in sorted(found.members)
    ]  # fmt: skip


@route("GET", "/boards/{id}/customFields")
def custom_fields(ask: Ask) -> Any:
    board = ask.board().id
    return [one for one in ask.world.custom_fields.values() if one["idModel"] == board]


@route("GET", "/boards/{id}/cards")
def cards(ask: Ask) -> Any:
    return _cards(ask, ask.text("filter") or "open")


@route("GET", "/boards/{id}/cards/{filter}")
def cards_by(ask: Ask) -> Any:
    """Return the cards by a filter, or one card: the path is the same."""
    wanted = ask.parts["filter"]
    if wanted in FILTERS:
        return _cards(ask, wanted)
    found = ask.world.card(wanted)
    if found.board != ask.board().id:
        raise not_found()
    return show(ask, found)


def _cards(ask: Ask, wanted: str) -> list[Json]:
    board = ask.board().id
    if wanted not in FILTERS:
        raise invalid_value("filter")
    return shown(ask, [card for card in ask.world.cards.values() if card.board == board], wanted)


def shown(ask: Ask, found: list[Card], wanted: str) -> list[Json]:
    """Return the cards of these that are wanted: 1,000 at most, the newest, by the date in the id.

    `open` are those that are not archived, also in an archived list; `visible` are not in one.
    They come as they lie on the board, and not by age.
    """

    def fits(card: Card) -> bool:
        if wanted == "visible":
            return not card.closed and not ask.world.lists[card.column].closed
        return wanted in ("all", "closed" if card.closed else "open")

    chosen = newest(filter(fits, found), ask.args, lambda card: born(card.id), MOST)
    chosen.sort(key=lambda card: (ask.world.lists[card.column].pos, card.pos))
    return [show(ask, card) for card in chosen]


def show(ask: Ask, card: Card) -> Json:
    """Return a card with what was asked for beside its own fields."""
    found = only(serializers.card(ask.world, card), ask.text("fields"))
    for name in ("attachments", "checklists", "customFieldItems", "members"):
        if ask.text(name, "false").lower() not in ("false", "none", ""):
            found[name] = card_extras.whole_card(ask.world, card.id)[name]
    return dict(found)


@route("POST", "/boards")
def make(ask: Ask) -> Any:
    return serializers.board(ask.world, boards.add_board(ask.world, ask.need("name"), {ask.by}))


@route("POST", "/boards/{id}/lists")
def make_list(ask: Ask) -> Any:
    return serializers.list_(boards.add_list(ask.world, ask.board().id, ask.need("name"), ask.by))


@route("POST", "/boards/{id}/labels")
def make_label(ask: Ask) -> Any:
    color = None if ask.text("color") in ("", "null") else ask.text("color")
    made = boards.add_label(ask.world, ask.board().id, ask.text("name"), color, ask.by)
    return serializers.label(made)


@route("GET", "/boards/{id}/labels/{idLabel}")
def one_label(ask: Ask) -> Any:
    found = known(ask.world.labels, ask.parts["idLabel"])
    if found.board != ask.board().id:
        raise not_found()
    return serializers.label(found)
