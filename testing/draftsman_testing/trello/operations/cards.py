"""Cards: made, copied, changed, moved, archived and deleted."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final

from draftsman_testing.trello.action_log import brief, of_board, of_card, of_list, record
from draftsman_testing.trello.api_errors import invalid_value
from draftsman_testing.trello.entities import Card, Checklist
from draftsman_testing.trello.operations import boards, labels
from draftsman_testing.trello.world import World, known

TEXT_MOST: Final = 16384


def make(
    world: World,
    list_id: str,
    name: str,
    by: str,
    *,
    desc: str = "",
    label_ids: Sequence[str] = (),
    members: Sequence[str] = (),
) -> Card:
    """Make a card at the end of a list."""
    card = _put(world, list_id, name, desc)
    labels.check(world, card.board, label_ids)
    card.labels = list(label_ids)
    card.members = list(members)
    record(world, "createCard", by, of_card(world, card))
    _say_labels(world, card, by)
    return card


def _put(world: World, list_id: str, name: str, desc: str) -> Card:
    target_list = known(world.lists, list_id)
    if not 1 <= len(name) <= TEXT_MOST:
        raise invalid_value("name")
    if len(desc) > TEXT_MOST:
        raise invalid_value("desc")
    board = world.boards[target_list.board]
    board.shorts += 1
    card = Card(world.id(), name, desc, board.id, target_list.id, board.shorts, world.link(), 0.0)
    card.pos = _end(world, target_list.id)
    world.cards[card.id] = card
    return card


def _end(world: World, list_id: str) -> float:
    return max((c.pos for c in world.cards.values() if c.column == list_id), default=0.0) + 16384.0


def _say_labels(world: World, card: Card, by: str) -> None:
    if world.label_actions:
        for id in card.labels:
            labels.say(world, "addLabelToCard", card, world.labels[id], by)


def copy_card(world: World, id: str, list_id: str, by: str, name: str | None = None) -> Card:
    """Copy a card with its labels, members, checklists and attachments, but no comments.

    To another board, labels go as they go with a move.
    """
    source = world.cards[id]
    card = _put(world, list_id, name or source.name, source.desc)
    card.labels = labels.on_board(world, source.labels, card.board, by)
    card.members = list(source.members)
    card.attachments = list(source.attachments)
    for checklist in source.checklists:
        checklist_copy = Checklist(
            world.id(), checklist.name, card.id, copy.deepcopy(checklist.items)
        )
        world.checklists[checklist_copy.id] = checklist_copy
        card.checklists.append(checklist_copy)
    record(world, "copyCard", by, of_card(world, card, cardSource=brief(source)))
    _say_labels(world, card, by)
    return card


def change(world: World, id: str, by: str, **values: Any) -> Card:
    """Change name, desc, closed, pos, due or due_complete; each is an updateCard of its own."""
    card = world.cards[id]
    for name, value in values.items():
        if name == "name" and not 1 <= len(value) <= TEXT_MOST:
            raise invalid_value("name")
        if name == "desc" and len(value) > TEXT_MOST:
            raise invalid_value("desc")
        old = getattr(card, name)
        if old == value:
            continue
        setattr(card, name, value)
        field = {"due_complete": "dueComplete"}.get(name, name)
        data = of_card(world, card, card=brief(card, **{field: value}), old={field: old})
        record(world, "updateCard", by, data)
    return card


def move(world: World, id: str, list_id: str, by: str, *, drag: bool = False) -> Card:
    """Move a card to another list of its board; a dragged card has two actions.

    The list may be archived, which hides the card.
    """
    card = world.cards[id]
    target = known(world.lists, list_id)
    if target.board != card.board:
        raise invalid_value("idList")
    if target.id == card.column:
        return card
    old_list = world.lists[card.column]
    old = card.pos
    card.column = target.id
    card.pos = _end(world, target.id)
    data = of_card(world, card, listed=False, card=brief(card, idList=target.id))
    data |= {"old": {"idList": old_list.id}}
    data |= {"listBefore": of_list(old_list), "listAfter": of_list(target)}
    record(world, "updateCard", by, data)
    if drag:
        data = of_card(world, card, card=brief(card, pos=card.pos), old={"pos": old})
        record(world, "updateCard", by, data)
    return card


def move_to_board(world: World, id: str, board: str, list_id: str, by: str) -> Card:
    """Move a card to another board: its id stays, its labels are others, its comments go along.

    The change of the labels is inferred: labels of the same name and color replace them, and are
    created if necessary, without label actions.
    """
    card = world.cards[id]
    target = known(world.lists, list_id)
    if target.board != board:
        raise invalid_value("idList")
    if board == card.board:
        return move(world, id, list_id, by)
    source = card.board
    old_list = world.lists[card.column]
    target_board = world.boards[board]
    target_board.shorts += 1
    card.short = target_board.shorts
    card.board = board
    card.column = target.id
    card.pos = _end(world, target.id)
    card.labels = labels.on_board(world, card.labels, board, by)
    data = of_card(world, card, boardSource=of_board(world, source), list=of_list(target))
    record(world, "moveCardToBoard", by, data)
    data = {"card": brief(card), "board": of_board(world, source), "list": of_list(old_list)}
    record(world, "moveCardFromBoard", by, data | {"boardTarget": of_board(world, board)})
    _say_labels(world, card, by)
    return card


def delete(world: World, id: str, by: str) -> None:
    """Delete a card for good, with its comments. The action has no name of it."""
    card = world.cards.pop(id)
    for checklist in card.checklists:
        world.checklists.pop(checklist.id, None)
    for action in list(world.on_card[id].values()):
        world.forget(action)
    data = of_card(world, card, card={"id": card.id, "idShort": card.short})
    record(world, "deleteCard", by, data)


def join(world: World, id: str, member: str, by: str) -> None:
    """Add a member to a card."""
    card = world.cards[id]
    if member in card.members:
        raise invalid_value("value")
    if member not in world.boards[card.board].members:
        boards.join(world, card.board, member, by)
    card.members.append(member)
    person = world.members[member]
    shown = {"idMember": person.id, "member": {"id": person.id, "name": person.name}}
    record(world, "addMemberToCard", by, of_card(world, card, listed=False, **shown))
