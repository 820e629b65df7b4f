"""JSON of entities in responses and webhooks."""

from __future__ import annotations

import functools
from typing import Any

from tests.support.trello.entities import (
    Attachment,
    Board,
    Card,
    Json,
    Label,
    List,
    Member,
    Webhook,
)
from tests.support.trello.world import World


def member(one: Member) -> Json:
    """Return a member."""
    initials = "".join(word[0] for word in one.name.split())[:4].upper()
    return {
        "id": one.id, "activityBlocked": False, "avatarHash": None, "avatarUrl": None,
        "fullName": one.name, "idMemberReferrer": None, "initials": initials,
        "nonPublic": {}, "nonPublicAvailable": True, "username": one.username,
    }  # fmt: skip


def whole_member(world: World, one: Member) -> Json:
    """Return a member with what only /members tells."""
    boards = [board.id for board in world.boards.values() if one.id in board.members]
    return member(one) | {
        "bio": "", "confirmed": True, "email": None, "idBoards": boards, "memberType": "normal",
        "status": "disconnected", "url": f"https://trello.com/{one.username}",
    }  # fmt: skip


def board(world: World, one: Board) -> Json:
    """Return a board."""
    names = {label.color: label.name for label in world.labels.values() if label.board == one.id}
    return {
        "id": one.id, "name": one.name, "desc": "", "descData": None, "closed": one.closed,
        "idOrganization": None, "idEnterprise": None, "pinned": False, "shortLink": one.link,
        "url": f"https://trello.com/b/{one.link}/{slug(one.name)}",
        "shortUrl": f"https://trello.com/b/{one.link}",
        "prefs": {"permissionLevel": "private", "comments": "members", "background": "blue"},
        "labelNames": {color: name for color, name in names.items() if color},
    }  # fmt: skip


def list_(one: List) -> Json:
    """Return a list."""
    return {
        "id": one.id, "name": one.name, "closed": one.closed, "idBoard": one.board, "pos": one.pos,
        "subscribed": False, "softLimit": None,
    }  # fmt: skip


def label(one: Label) -> Json:
    """Return a label for the REST API; without a color, `color` is null."""
    return {
        "id": one.id, "idBoard": one.board, "name": one.name, "color": one.color, "uses": 0,
    }  # fmt: skip


def attachment(one: Attachment) -> Json:
    """Return an attachment."""
    return {
        "id": one.id, "bytes": None if one.data is None else len(one.data), "date": one.date,
        "edgeColor": None, "idMember": one.member, "isUpload": one.data is not None,
        "mimeType": one.mime, "name": one.name, "previews": [], "url": one.url, "pos": 16384,
    }  # fmt: skip


def card(world: World, one: Card) -> Json:
    """Return a card."""
    items = [item for checklist in one.checklists for item in checklist.items]
    checked = sum(item["state"] == "complete" for item in items)
    said = sum(action["type"] == "commentCard" for action in world.on_card[one.id].values())
    labels = [label(world.labels[id]) for id in one.labels]
    return {
        "id": one.id, "name": one.name, "desc": one.desc, "descData": None, "closed": one.closed,
        "idBoard": one.board, "idList": one.column, "idShort": one.short, "shortLink": one.link,
        "idLabels": list(one.labels), "labels": labels, "idMembers": list(one.members),
        "idMembersVoted": [], "idChecklists": [checklist.id for checklist in one.checklists],
        "idAttachmentCover": None, "checkItemStates": None, "manualCoverAttachment": False,
        "pos": one.pos, "due": one.due, "dueComplete": one.due_complete, "dueReminder": None,
        "start": None, "subscribed": False, "isTemplate": False, "cardRole": None,
        "dateLastActivity": one.activity,
        "shortUrl": f"https://trello.com/c/{one.link}",
        "url": f"https://trello.com/c/{one.link}/{one.short}-{slug(one.name)}",
        "badges": {
            "attachments": len(one.attachments), "checkItems": len(items),
            "checkItemsChecked": checked, "comments": said, "description": bool(one.desc),
            "due": one.due, "dueComplete": one.due_complete, "votes": 0, "subscribed": False,
        },
    }  # fmt: skip


def webhook(one: Webhook) -> Json:
    """Return a webhook."""
    return {
        "id": one.id, "description": one.description, "idModel": one.model,
        "callbackURL": one.url, "active": one.active, "consecutiveFailures": one.failures,
        "firstConsecutiveFailDate": one.first_failure,
    }  # fmt: skip


@functools.cache
def slug(name: str) -> str:
    """Return a name as it is in an address."""
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def only(found: Any, fields: str | None) -> Any:
    """Return the wanted fields of one thing or of many; the id is always among them."""
    if fields in (None, "", "all"):
        return found
    if isinstance(found, list):
        return [only(one, fields) for one in found]
    wanted = {"id", *str(fields).split(",")}
    return {name: value for name, value in found.items() if name in wanted}
