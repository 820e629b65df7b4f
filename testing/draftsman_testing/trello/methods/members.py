"""Members, and whose token it is."""

from __future__ import annotations

from typing import Any

from draftsman_testing.trello import serializers
from draftsman_testing.trello.api_errors import ApiError
from draftsman_testing.trello.methods.boards import show
from draftsman_testing.trello.methods.registry import ApiCall, route


@route("GET", "/members/{member}")
def get(call: ApiCall) -> Any:
    member = call.world.member(call.parts["member"])
    return serializers.only(serializers.whole_member(call.world, member), call.text("fields"))


@route("GET", "/members/{member}/boards")
def boards(call: ApiCall) -> Any:
    member = call.world.member(call.parts["member"]).id
    shown = [
        serializers.board(call.world, board)
        for board in call.world.boards.values()
        if {member, call.by} <= board.members
    ]
    return serializers.only(shown, call.text("fields"))


@route("GET", "/members/{member}/cards")
def cards(call: ApiCall) -> Any:
    member = call.world.member(call.parts["member"]).id
    return [show(call, card) for card in call.world.cards.values() if member in card.members]


@route("GET", "/tokens/{token}")
def token(call: ApiCall) -> Any:
    """Return the permissions of the request's own token."""
    if call.parts["token"] != call.world.token:
        raise ApiError(401, "invalid token")
    rights = {"idModel": "*", "modelType": "Board", "read": True, "write": call.world.writes}
    return {
        "id": "5eedfa4e5eedfa4e5eedfa4e", "identifier": "draftsman", "idMember": call.world.bot,
        "dateCreated": "2026-01-01T00:00:00.000Z", "dateExpires": None,
        "permissions": [rights],
    }  # fmt: skip
