"""Members, and whose token it is."""

from __future__ import annotations

from typing import Any

from tests.support.trello import serializers
from tests.support.trello.api_errors import ApiError
from tests.support.trello.methods.boards import show
from tests.support.trello.methods.registry import Ask, route


@route("GET", "/members/{member}")
def one(ask: Ask) -> Any:
    found = ask.world.member(ask.parts["member"])
    return serializers.only(serializers.whole_member(ask.world, found), ask.text("fields"))


@route("GET", "/members/{member}/boards")
def boards(ask: Ask) -> Any:
    found = ask.world.member(ask.parts["member"]).id
    shown = [
        serializers.board(ask.world, board)
        for board in ask.world.boards.values()
        if {found, ask.by} <= board.members
    ]
    return serializers.only(shown, ask.text("fields"))


@route("GET", "/members/{member}/cards")
def cards(ask: Ask) -> Any:
    found = ask.world.member(ask.parts["member"]).id
    return [show(ask, card) for card in ask.world.cards.values() if found in card.members]


@route("GET", "/tokens/{token}")
def token(ask: Ask) -> Any:
    """Return what a token is for; one may only ask for one's own."""
    if ask.parts["token"] != ask.world.token:
        raise ApiError(401, "invalid token")
    rights = {"idModel": "*", "modelType": "Board", "read": True, "write": ask.world.writes}
    return {
        "id": "5eedfa4e5eedfa4e5eedfa4e", "identifier": "draftsman", "idMember": ask.world.bot,
        "dateCreated": "2026-01-01T00:00:00.000Z", "dateExpires": None,
        "permissions": [rights],
    }  # fmt: skip
