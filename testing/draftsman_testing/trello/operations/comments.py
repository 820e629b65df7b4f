"""Comments: an action of type commentCard each, whose id is the comment's."""

from __future__ import annotations

from typing import Final

from draftsman_testing.trello.action_log import of_card, record
from draftsman_testing.trello.api_errors import forbidden, invalid_value, not_found
from draftsman_testing.trello.entities import Comment, Json
from draftsman_testing.trello.world import World, known

TEXT_MOST: Final = 16384


def _checked(text: object) -> str:
    if not isinstance(text, str) or not 1 <= len(text) <= TEXT_MOST:
        raise invalid_value("text")
    return text


def say(world: World, card_id: str, by: str, text: object) -> Json:
    """Comment on a card; return the action."""
    card = world.cards[card_id]
    data = of_card(world, card, text=_checked(text), textData={"emoji": {}})
    return record(world, "commentCard", by, data)


def find(world: World, id: str) -> Json:
    """Return the action of a comment."""
    action = known(world.actions, id)
    if action["type"] != "commentCard":
        raise not_found()
    return action


def edit(world: World, id: str, by: str, text: object) -> Json:
    """Change a comment, as its author only."""
    action = find(world, id)
    new = _checked(text)
    if action["idMemberCreator"] != by:
        raise forbidden()
    card = world.cards[action["data"]["card"]["id"]]
    old = action["data"]["text"]
    action["data"]["text"] = new
    data = of_card(world, card, listed=False, action={"id": id, "text": new}, old={"text": old})
    recorded = record(world, "updateComment", by, data)
    action["data"]["dateLastEdited"] = recorded["date"]
    return action


def delete(world: World, id: str, by: str) -> None:
    """Delete a comment: any member of the board may, the bot only its own."""
    action = find(world, id)
    if action["idMemberCreator"] != by and by == world.bot:
        raise forbidden()
    card = world.cards[action["data"]["card"]["id"]]
    world.forget(action)
    record(world, "deleteComment", by, of_card(world, card, listed=False, action={"id": id}))


def of(world: World, card_id: str) -> list[Comment]:
    """Return the comments of a card, oldest first."""
    return [
        Comment(
            action["id"],
            action["idMemberCreator"],
            action["data"]["text"],
            "dateLastEdited" in action["data"],
            action["date"],
        )
        for action in world.on_card[card_id].values()
        if action["type"] == "commentCard"
    ]
