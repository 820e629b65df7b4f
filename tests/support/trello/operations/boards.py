"""Boards, their members, lists and labels."""

from __future__ import annotations

from tests.support.trello.action_log import of_board, of_label, of_list, record
from tests.support.trello.api_errors import ApiError, invalid_value
from tests.support.trello.entities import Board, Label, List, Member
from tests.support.trello.world import World

COLORS = frozenset({
    f"{color}{shade}"
    for color in (
        "green", "yellow", "orange", "red", "purple", "blue", "sky", "lime", "pink", "black",
    )
    for shade in ("", "_light", "_dark")
})  # fmt: skip


def add_member(world: World, name: str) -> Member:
    """Let somebody have an account."""
    username = "".join(letter for letter in name.lower() if letter.isalnum())
    taken = {one.username for one in world.members.values()}
    while username in taken:
        username += "1"
    made = Member(world.id(), name, username)
    world.members[made.id] = made
    return made


def add_board(world: World, name: str, members: set[str]) -> Board:
    """Make a board."""
    made = Board(world.id(), name, world.link(), members)
    world.boards[made.id] = made
    return made


def add_list(world: World, board: str, name: str, by: str) -> List:
    """Make a list, at the end of the board."""
    if not 1 <= len(name) <= 16384:
        raise invalid_value("name")
    count = sum(one.board == board for one in world.lists.values())
    made = List(world.id(), name, board, 16384.0 * (count + 1))
    world.lists[made.id] = made
    record(world, "createList", by, {"list": of_list(made), "board": of_board(world, board)})
    return made


def close_list(world: World, id: str, by: str, closed: bool = True) -> None:
    """Archive a list; its cards stay in it and open."""
    found = world.lists[id]
    old, found.closed = found.closed, closed
    data = {"list": of_list(found) | {"closed": closed}, "old": {"closed": old}}
    record(world, "updateList", by, data | {"board": of_board(world, found.board)})


def add_label(world: World, board: str, name: str, color: str | None, by: str) -> Label:
    """Make a label. Its name may be empty, or that of another."""
    if color is not None and color not in COLORS:
        raise invalid_value("color")
    made = Label(world.id(), name, color, board)
    world.labels[made.id] = made
    data = {"label": of_label(made), "board": of_board(world, board)}
    record(world, "createLabel", by, data)
    return made


def rename_label(world: World, id: str, name: str, by: str) -> Label:
    """Give a label another name; its id stays."""
    if len(name) > 16384:
        raise ApiError(400, "invalid value for name")
    found = world.labels[id]
    old, found.name = found.name, name
    data = {"label": of_label(found), "old": {"name": old}}
    record(world, "updateLabel", by, data | {"board": of_board(world, found.board)})
    return found


def delete_label(world: World, id: str, by: str) -> None:
    """Delete a label from its board. It leaves every card, and no card says so."""
    found = world.labels.pop(id)
    for card in world.cards.values():
        if id in card.labels:
            card.labels.remove(id)
    data = {"label": {"id": id}, "board": of_board(world, found.board)}
    record(world, "deleteLabel", by, data)


def join(world: World, board: str, member: str, by: str) -> None:
    """Make somebody a member of a board."""
    world.boards[board].members.add(member)
    one = world.members[member]
    data = {"board": of_board(world, board), "idMemberAdded": member, "memberType": "normal"}
    record(world, "addMemberToBoard", by, data | {"member": {"id": one.id, "name": one.name}})
