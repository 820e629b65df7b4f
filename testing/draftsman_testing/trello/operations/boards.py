"""Boards, their members, lists and labels."""

from __future__ import annotations

from collections.abc import Sequence

from draftsman_testing.trello.action_log import of_board, of_label, of_list, record
from draftsman_testing.trello.api_errors import ApiError, invalid_value
from draftsman_testing.trello.entities import Board, Json, Label, List, Member
from draftsman_testing.trello.world import World

COLORS = frozenset({
    f"{color}{shade}"
    for color in (
        "green", "yellow", "orange", "red", "purple", "blue", "sky", "lime", "pink", "black",
    )
    for shade in ("", "_light", "_dark")
})  # fmt: skip


def add_member(world: World, name: str) -> Member:
    """Create an account."""
    username = "".join(letter for letter in name.lower() if letter.isalnum())
    usernames = {member.username for member in world.members.values()}
    while username in usernames:
        username += "1"
    member = Member(world.id(), name, username)
    world.members[member.id] = member
    return member


def add_board(world: World, name: str, members: set[str]) -> Board:
    """Make a board."""
    board = Board(world.id(), name, world.link(), members)
    world.boards[board.id] = board
    return board


def add_list(world: World, board: str, name: str, by: str) -> List:
    """Make a list, at the end of the board."""
    if not 1 <= len(name) <= 16384:
        raise invalid_value("name")
    count = sum(place.board == board for place in world.lists.values())
    new_list = List(world.id(), name, board, 16384.0 * (count + 1))
    world.lists[new_list.id] = new_list
    record(world, "createList", by, {"list": of_list(new_list), "board": of_board(world, board)})
    return new_list


def close_list(world: World, id: str, by: str, closed: bool = True) -> None:
    """Archive a list; its cards stay in it and open."""
    place = world.lists[id]
    old = place.closed
    place.closed = closed
    data = {"list": of_list(place) | {"closed": closed}, "old": {"closed": old}}
    record(world, "updateList", by, data | {"board": of_board(world, place.board)})


def add_label(world: World, board: str, name: str, color: str | None, by: str) -> Label:
    """Make a label. Its name may be empty, or that of another."""
    if color is not None and color not in COLORS:
        raise invalid_value("color")
    label = Label(world.id(), name, color, board)
    world.labels[label.id] = label
    data = {"label": of_label(label), "board": of_board(world, board)}
    record(world, "createLabel", by, data)
    return label


def rename_label(world: World, id: str, name: str, by: str) -> Label:
    """Give a label another name; its id stays."""
    if len(name) > 16384:
        raise ApiError(400, "invalid value for name")
    label = world.labels[id]
    old = label.name
    label.name = name
    data = {"label": of_label(label), "old": {"name": old}}
    record(world, "updateLabel", by, data | {"board": of_board(world, label.board)})
    return label


def delete_label(world: World, id: str, by: str) -> None:
    """Delete a label from its board and its cards, without actions of the cards."""
    label = world.labels.pop(id)
    for card in world.cards.values():
        if id in card.labels:
            card.labels.remove(id)
    data = {"label": {"id": id}, "board": of_board(world, label.board)}
    record(world, "deleteLabel", by, data)


def join(world: World, board: str, member: str, by: str) -> None:
    """Add a member to a board."""
    world.boards[board].members.add(member)
    person = world.members[member]
    data = {"board": of_board(world, board), "idMemberAdded": member, "memberType": "normal"}
    record(world, "addMemberToBoard", by, data | {"member": {"id": person.id, "name": person.name}})


def delete_board(world: World, id: str) -> None:
    """Delete a board with its lists, labels, cards and custom fields."""
    del world.boards[id]
    for entities in (world.lists, world.labels, world.cards):
        for key in [key for key, entity in entities.items() if entity.board == id]:
            del entities[key]
    for key in [key for key, field in world.custom_fields.items() if field["idModel"] == id]:
        del world.custom_fields[key]


def add_field(world: World, board: str, name: str, type: str, options: Sequence[str]) -> Json:
    """Add a custom field to a board, a list with its options."""
    id = world.id()
    field: Json = {
        "id": id, "idModel": board, "modelType": "board", "name": name, "type": type,
        "pos": 16384, "display": {"cardFront": True}, "isSuggestedField": False,
    }  # fmt: skip
    if type == "list":
        field["options"] = [
            {
                "id": world.id(), "idCustomField": id, "value": {"text": option},
                "color": "none", "pos": 16384 * number,
            }
            for number, option in enumerate(options, 1)
        ]  # fmt: skip
    world.custom_fields[id] = field
    return field


def delete_field(world: World, id: str) -> None:
    """Delete a custom field with its values."""
    del world.custom_fields[id]
    for card in world.cards.values():
        card.fields.pop(id, None)
