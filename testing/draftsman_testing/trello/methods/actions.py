"""Actions and comments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from draftsman_testing.trello.action_log import LISTED
from draftsman_testing.trello.api_errors import not_found
from draftsman_testing.trello.entities import Json
from draftsman_testing.trello.methods.registry import ApiCall, route
from draftsman_testing.trello.operations import comments
from draftsman_testing.trello.paging import newest
from draftsman_testing.trello.serializers import only
from draftsman_testing.trello.world import known

LIMIT: Final = 50
"""Default number of actions in a response."""
OF_CARD: Final = "commentCard,updateCard:idList"
"""The filter of a card's actions when there is none."""


@route("GET", "/boards/{id}/actions")
def of_board(call: ApiCall) -> Any:
    board = call.board().id
    actions = call.world.actions.values()
    return listed(
        call, [action for action in actions if action["data"].get("board", {}).get("id") == board]
    )


@route("GET", "/cards/{id}/actions")
def of_card(call: ApiCall) -> Any:
    card = call.card().id
    return listed(call, call.world.on_card[card].values(), OF_CARD)


@route("GET", "/lists/{id}/actions")
def of_list(call: ApiCall) -> Any:
    place = known(call.world.lists, call.parts["id"])
    call.may_see(place.board)
    names = ("list", "listBefore", "listAfter")

    def mine(data: Json) -> bool:
        return place.id in [data.get(name, {}).get("id") for name in names]

    return listed(call, [action for action in call.world.actions.values() if mine(action["data"])])


def listed(call: ApiCall, of: Iterable[Json], default: str = "all") -> list[Json]:
    """Return the newest actions of these that a list of actions has, newest first.

    An unknown type in the filter matches nothing; the response of Trello is unknown.
    """
    filters = call.text("filter") or default
    cards = set(call.ids("idModels"))
    matching = [
        action
        for action in of
        if action["type"] in LISTED
        and (not cards or action["data"].get("card", {}).get("id") in cards)
        and any(_matches(action, pattern) for pattern in filters.split(","))
    ]
    shown = newest(matching, call.args, _date, LIMIT)
    if str(call.args.get("memberCreator", "true")).lower() == "false":
        shown = [{k: v for k, v in action.items() if k != "memberCreator"} for action in shown]
    return [only(action, call.text("fields")) for action in shown]


def _date(action: Json) -> str:
    return str(action["date"])


def _matches(action: Json, pattern: str) -> bool:
    kind, _, changed = pattern.partition(":")
    if kind == "all":
        return True
    return kind == action["type"] and (not changed or changed in action["data"].get("old", {}))


@route("POST", "/cards/{id}/actions/comments")
def comment(call: ApiCall) -> Any:
    return comments.say(call.world, call.card().id, call.by, call.args.get("text"))


@route("PUT", "/cards/{id}/actions/{idAction}/comments")
def edit_on_card(call: ApiCall) -> Any:
    _on_card(call)
    return comments.edit(call.world, call.parts["idAction"], call.by, call.args.get("text"))


@route("DELETE", "/cards/{id}/actions/{idAction}/comments")
def delete_on_card(call: ApiCall) -> Any:
    _on_card(call)
    comments.delete(call.world, call.parts["idAction"], call.by)
    return {"_value": None}


def _on_card(call: ApiCall) -> None:
    comment = comments.find(call.world, call.parts["idAction"])
    if comment["data"]["card"]["id"] != call.card().id:
        raise not_found()


@route("GET", "/actions/{id}")
def get(call: ApiCall) -> Any:
    action = known(call.world.actions, call.parts["id"])
    if "board" in action["data"]:
        call.may_see(action["data"]["board"]["id"])
    return only(action, call.text("fields"))


@route("PUT", "/actions/{id}")
def edit(call: ApiCall) -> Any:
    return comments.edit(call.world, call.parts["id"], call.by, call.args.get("text"))


@route("PUT", "/actions/{id}/text")
def edit_text(call: ApiCall) -> Any:
    return comments.edit(call.world, call.parts["id"], call.by, call.args.get("value"))


@route("DELETE", "/actions/{id}")
def delete(call: ApiCall) -> Any:
    comments.delete(call.world, call.parts["id"], call.by)
    return {"_value": None}
