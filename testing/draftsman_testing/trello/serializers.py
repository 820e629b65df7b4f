"""JSON of entities in responses and webhooks."""

from __future__ import annotations

import functools
from typing import Any

from draftsman_testing.trello.entities import (
    Attachment,
    Board,
    Card,
    Json,
    Label,
    List,
    Member,
    Webhook,
)
from draftsman_testing.trello.world import World


def member(obj: Member) -> Json:
    """Return a member."""
    initials = "".join(part[0] for part in obj.name.split())[:4].upper()
    return {
        "id": obj.id, "activityBlocked": False, "avatarHash": None, "avatarUrl": None,
        "fullName": obj.name, "idMemberReferrer": None, "initials": initials,
        "nonPublic": {}, "nonPublicAvailable": True, "username": obj.username,
    }  # fmt: skip


def whole_member(world: World, obj: Member) -> Json:
    """Return a member with the fields that only /members has."""
    boards = [board.id for board in world.boards.values() if obj.id in board.members]
    return member(obj) | {
        "bio": "", "confirmed": True, "email": None, "idBoards": boards, "memberType": "normal",
        "status": "disconnected", "url": f"https://trello.com/{obj.username}",
    }  # fmt: skip


def board(world: World, obj: Board) -> Json:
    """Return a board."""
    names = {label.color: label.name for label in world.labels.values() if label.board == obj.id}
    return {
        "id": obj.id, "name": obj.name, "desc": "", "descData": None, "closed": obj.closed,
        "idOrganization": None, "idEnterprise": None, "pinned": False, "shortLink": obj.link,
        "url": f"https://trello.com/b/{obj.link}/{slug(obj.name)}",
        "shortUrl": f"https://trello.com/b/{obj.link}",
        "prefs": {"permissionLevel": "private", "comments": "members", "background": "blue"},
        "labelNames": {color: name for color, name in names.items() if color},
    }  # fmt: skip


def list_(obj: List) -> Json:
    """Return a list."""
    return {
        "id": obj.id, "name": obj.name, "closed": obj.closed, "idBoard": obj.board, "pos": obj.pos,
        "subscribed": False, "softLimit": None,
    }  # fmt: skip


def label(obj: Label) -> Json:
    """Return a label for the REST API; without a color, `color` is null."""
    return {
        "id": obj.id, "idBoard": obj.board, "name": obj.name, "color": obj.color, "uses": 0,
    }  # fmt: skip


def attachment(obj: Attachment) -> Json:
    """Return an attachment."""
    return {
        "id": obj.id, "bytes": None if obj.data is None else len(obj.data), "date": obj.date,
        "edgeColor": None, "idMember": obj.member, "isUpload": obj.data is not None,
        "mimeType": obj.mime, "name": obj.name, "previews": [], "url": obj.url, "pos": 16384,
    }  # fmt: skip


def card(world: World, obj: Card) -> Json:
    """Return a card."""
    items = [item for checklist in obj.checklists for item in checklist.items]
    checked = sum(item["state"] == "complete" for item in items)
    comment_count = sum(
        action["type"] == "commentCard" for action in world.on_card[obj.id].values()
    )
    labels = [label(world.labels[id]) for id in obj.labels]
    return {
        "id": obj.id, "name": obj.name, "desc": obj.desc, "descData": None, "closed": obj.closed,
        "idBoard": obj.board, "idList": obj.column, "idShort": obj.short, "shortLink": obj.link,
        "idLabels": list(obj.labels), "labels": labels, "idMembers": list(obj.members),
        "idMembersVoted": [], "idChecklists": [checklist.id for checklist in obj.checklists],
        "idAttachmentCover": None, "checkItemStates": None, "manualCoverAttachment": False,
        "pos": obj.pos, "due": obj.due, "dueComplete": obj.due_complete, "dueReminder": None,
        "start": None, "subscribed": False, "isTemplate": False, "cardRole": None,
        "dateLastActivity": obj.activity,
        "shortUrl": f"https://trello.com/c/{obj.link}",
        "url": f"https://trello.com/c/{obj.link}/{obj.short}-{slug(obj.name)}",
        "badges": {
            "attachments": len(obj.attachments), "checkItems": len(items),
            "checkItemsChecked": checked, "comments": comment_count, "description": bool(obj.desc),
            "due": obj.due, "dueComplete": obj.due_complete, "votes": 0, "subscribed": False,
        },
    }  # fmt: skip


def webhook(obj: Webhook) -> Json:
    """Return a webhook."""
    return {
        "id": obj.id, "description": obj.description, "idModel": obj.model,
        "callbackURL": obj.url, "active": obj.active, "consecutiveFailures": obj.failures,
        "firstConsecutiveFailDate": obj.first_failure,
    }  # fmt: skip


@functools.cache
def slug(name: str) -> str:
    """Return a name as it is in an address."""
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def only(content: Any, fields: str | None) -> Any:
    """Return the requested fields of an object or of a list; the id is always included."""
    if fields in (None, "", "all"):
        return content
    if isinstance(content, list):
        return [only(item, fields) for item in content]
    names = {"id", *str(fields).split(",")}
    return {name: value for name, value in content.items() if name in names}
