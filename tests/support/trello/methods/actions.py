"""Actions and comments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tests.support.trello.action_log import LISTED
from tests.support.trello.api_errors import not_found
from tests.support.trello.entities import Json
from tests.support.trello.methods.registry import Ask, route
from tests.support.trello.operations import comments
from tests.support.trello.paging import newest
from tests.support.trello.serializers import only
from tests.support.trello.world import known

LIMIT: Final = 50
"""Actions in an answer when nobody says how many."""
OF_CARD: Final = "commentCard,updateCard:idList"
"""The filter of a card's actions when there is none."""


@route("GET", "/boards/{id}/actions")
def of_board(ask: Ask) -> Any:
    board = ask.board().id
    every = ask.world.actions.values()
    return listed(ask, [one for one in every if one["data"].get("board", {}).get("id") == board])


@route("GET", "/cards/{id}/actions")
def of_card(ask: Ask) -> Any:
    card = ask.card().id
    return listed(ask, ask.world.on_card[card].values(), OF_CARD)


@route("GET", "/lists/{id}/actions")
def of_list(ask: Ask) -> Any:
    one = known(ask.world.lists, ask.parts["id"])
    ask.may_see(one.board)
    names = ("list", "listBefore", "listAfter")

    def mine(data: Json) -> bool:
        return one.id in [data.get(name, {}).get("id") for name in names]

    return listed(ask, [found for found in ask.world.actions.values() if mine(found["data"])])


def listed(ask: Ask, of: Iterable[Json], default: str = "all") -> list[Json]:
    """Return the newest actions of these that a list of actions has, newest first.

    An unknown type in the filter finds nothing: what Trello says to it is unknown.
    """
    wanted = ask.text("filter") or default
    cards = set(ask.ids("idModels"))
    found = [
        action
        for action in of
        if action["type"] in LISTED
        and (not cards or action["data"].get("card", {}).get("id") in cards)
        and any(_wanted(action, one) for one in wanted.split(","))
    ]
    shown = newest(found, ask.args, _date, LIMIT)
    if str(ask.args.get("memberCreator", "true")).lower() == "false":
        shown = [{k: v for k, v in one.items() if k != "memberCreator"} for one in shown]
    return [only(one, ask.text("fields")) for one in shown]


def _date(action: Json) -> str:
    return str(action["date"])


def _wanted(action: Json, wanted: str) -> bool:
    kind, _, changed = wanted.partition(":")
    if kind == "all":
        return True
    return kind == action["type"] and (not changed or changed in action["data"].get("old", {}))


@route("POST", "/cards/{id}/actions/comments")
def comment(ask: Ask) -> Any:
    return comments.say(ask.world, ask.card().id, ask.by, ask.args.get("text"))


@route("PUT", "/cards/{id}/actions/{idAction}/comments")
def edit_on_card(ask: Ask) -> Any:
    _on_card(ask)
    return comments.edit(ask.world, ask.parts["idAction"], ask.by, ask.args.get("text"))


@route("DELETE", "/cards/{id}/actions/{idAction}/comments")
def delete_on_card(ask: Ask) -> Any:
    _on_card(ask)
    comments.delete(ask.world, ask.parts["idAction"], ask.by)
    return {"_value": None}


def _on_card(ask: Ask) -> None:
    found = comments.find(ask.world, ask.parts["idAction"])
    if found["data"]["card"]["id"] != ask.card().id:
        raise not_found()


@route("GET", "/actions/{id}")
def one(ask: Ask) -> Any:
    found = known(ask.world.actions, ask.parts["id"])
    if "board" in found["data"]:
        ask.may_see(found["data"]["board"]["id"])
    return only(found, ask.text("fields"))


@route("PUT", "/actions/{id}")
def edit(ask: Ask) -> Any:
    return comments.edit(ask.world, ask.parts["id"], ask.by, ask.args.get("text"))


@route("PUT", "/actions/{id}/text")
def edit_text(ask: Ask) -> Any:
    return comments.edit(ask.world, ask.parts["id"], ask.by, ask.args.get("value"))


@route("DELETE", "/actions/{id}")
def delete(ask: Ask) -> Any:
    comments.delete(ask.world, ask.parts["id"], ask.by)
    return {"_value": None}
