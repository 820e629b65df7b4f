"""Records actions and queues them for webhooks."""

from __future__ import annotations

import copy
import json
from typing import Any, Final

from draftsman_testing.trello import serializers
from draftsman_testing.trello.entities import Card, Delivery, Json, Label, List, Webhook
from draftsman_testing.trello.world import World, iso

LISTED: Final = frozenset({
    "addAttachmentToCard", "addChecklistToCard", "addMemberToBoard", "addMemberToCard",
    "commentCard", "convertToCardFromCheckItem", "copyBoard", "copyCard", "copyCommentCard",
    "createBoard", "createCard", "createList", "deleteAttachmentFromCard", "deleteCard",
    "moveCardFromBoard", "moveCardToBoard", "moveListFromBoard", "moveListToBoard",
    "removeChecklistFromCard", "removeMemberFromCard", "updateBoard", "updateCard",
    "updateCheckItemStateOnCard", "updateChecklist", "updateCustomFieldItem", "updateList",
})  # fmt: skip
"""Types that GET .../actions returns. All other types are sent to webhooks only: added and removed
labels, changed and deleted comments, changes of labels, items of checklists. The list is Trello's
of 2017, as far as it is needed here."""


def record(world: World, kind: str, by: str, data: Json, *, also: tuple[str, ...] = ()) -> Json:
    """Keep an action, and queue it for every webhook of a model that it touches.

    `also` are models that the data does not name.
    """
    moment = world.moment()
    action: Json = {
        "id": world.id(moment),
        "idMemberCreator": by,
        "data": copy.deepcopy(data),
        "appCreator": None,
        "type": kind,
        "date": iso(moment),
        "limits": None,
        "memberCreator": serializers.member(world.members[by]),
    }
    world.keep(action)
    if (card := world.cards.get(data.get("card", {}).get("id", ""))) is not None:
        card.activity = action["date"]
    touched = {by, *also, *_models(data)}
    for webhook in world.webhooks.values():
        if webhook.active and webhook.model in touched:
            world.pending.append(_delivery(world, webhook, action))
    return action


def _models(data: Json) -> set[str]:
    names = ("board", "card", "list", "listBefore", "listAfter", "member")
    return {data[name]["id"] for name in names if name in data}


def _delivery(world: World, webhook: Webhook, action: Json) -> Delivery:
    display = {"translationKey": f"action_{action['type']}", "entities": {}}
    shown_action = action | {"display": display}
    body = json.dumps(
        {"model": model(world, webhook.model), "action": shown_action}, ensure_ascii=False
    )
    return Delivery(webhook.id, webhook.url, body.encode(errors="replace"), shown_action)


def model(world: World, id: str) -> Json | None:
    """Return the watched model in its current state, or None if it does not exist."""
    if (board := world.boards.get(id)) is not None:
        return serializers.board(world, board)
    if (card := world.cards.get(id)) is not None:
        return serializers.card(world, card)
    if (place := world.lists.get(id)) is not None:
        return serializers.list_(place)
    if (member := world.members.get(id)) is not None:
        return serializers.member(member)
    return None


def of_card(world: World, card: Card, /, *, listed: bool = True, **more: Any) -> Json:
    """Return the data of a card action; label actions do not name the list."""
    data: Json = {"card": brief(card), "board": of_board(world, card.board)}
    if listed:
        data["list"] = of_list(world.lists[card.column])
    return data | more


def brief(card: Card, **more: Any) -> Json:
    """Return a card as in the data of an action."""
    named = {"id": card.id, "name": card.name, "idShort": card.short, "shortLink": card.link}
    return more | named


def of_board(world: World, id: str) -> Json:
    """Return a board as in the data of an action."""
    board = world.boards[id]
    return {"id": board.id, "name": board.name, "shortLink": board.link}


def of_list(entity: List) -> Json:
    """Return a list as in the data of an action."""
    return {"id": entity.id, "name": entity.name}


def of_label(label: Label) -> Json:
    """Return a label as in the data of an action; `color` is absent without a color."""
    named = {"id": label.id, "name": label.name}
    return named if label.color is None else named | {"color": label.color}
