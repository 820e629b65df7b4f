"""What Trello says happened, whichever way it comes: read with patience, or not at all. Pure.

Trello leaves fields out, sends null for others, and adds new ones and new types without a word. An
action of which something is missing that it needs is of type OTHER, and nothing follows from it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from draftsman_bots.trello.ids import is_id, parse_time


class ActionKind(StrEnum):
    """What an action is about."""

    LABEL_ADDED = "label_on"
    LABEL_REMOVED = "label_off"
    LABEL_DELETED = "label_gone"
    """A label of the board was deleted."""
    CARD_CHANGED = "card_here"
    """A card came, was changed or was moved: it may have labels on it."""
    CARD_REMOVED = "card_gone"
    """A card was archived or deleted."""
    COMMENT = "comment"
    COMMENT_EDITED = "comment_edited"
    COMMENT_DELETED = "comment_deleted"
    OTHER = "other"


KINDS: Final = {
    "addLabelToCard": ActionKind.LABEL_ADDED,
    "removeLabelFromCard": ActionKind.LABEL_REMOVED,
    "deleteLabel": ActionKind.LABEL_DELETED,
    "createCard": ActionKind.CARD_CHANGED,
    "copyCard": ActionKind.CARD_CHANGED,
    "convertToCardFromCheckItem": ActionKind.CARD_CHANGED,
    "moveCardToBoard": ActionKind.CARD_CHANGED,
    "updateCard": ActionKind.CARD_CHANGED,
    "deleteCard": ActionKind.CARD_REMOVED,
    "commentCard": ActionKind.COMMENT,
    "updateComment": ActionKind.COMMENT_EDITED,
    "deleteComment": ActionKind.COMMENT_DELETED,
}
EDITABLE: Final = frozenset({"name", "desc"})
"""Fields of a card that a job reads."""
LISTED_TYPES: Final = "commentCard,updateCard,deleteCard,moveCardToBoard"
"""What is asked for of a board's actions: of the kinds above, those that they ever have."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something that happened.

    `comment` is the comment that was written, changed or deleted, `text` what it says now; `moved`
    says that a card changed its list, or came back from the archive, `edited` that its title or
    description was changed.
    """

    id: str
    kind: ActionKind
    board: str = ""
    card: str = ""
    label: str = ""
    member: str = ""
    name: str = ""
    username: str = ""
    comment: str = ""
    text: str = ""
    date: datetime | None = None
    moved: bool = False
    edited: bool = False
    type: str = ""


def parse_body(raw: bytes) -> Any:
    """Return the action of a webhook's body, None where it is no JSON or has none."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found.get("action") if isinstance(found, dict) else None


def parse_action(found: Any) -> Action | None:
    """Return an action as it came; None for what is none."""
    if not isinstance(found, dict) or not is_id(found.get("id")):
        return None
    data, who = _object(found, "data"), _object(found, "memberCreator")
    told = Action(
        id=found["id"],
        kind=_kind(_text(found, "type"), data),
        board=_id(_object(data, "board")),
        card=_id(_object(data, "card")),
        label=_id(_object(data, "label")),
        member=_id(who) or _only_id(found.get("idMemberCreator")),
        name=_text(who, "fullName") or _text(who, "username"),
        username=_text(who, "username"),
        date=parse_time(found.get("date")),
        moved=_moved(data),
        edited=not EDITABLE.isdisjoint(_object(data, "old")),
        type=_text(found, "type")[:60],
    )
    return _commented(told, data) if told.kind.startswith("comment") else _whole(told)


def card_label_ids(card: Any) -> frozenset[str]:
    """Return the ids of the labels on a card."""
    found = card.get("idLabels") if isinstance(card, dict) else None
    return frozenset(one for one in found if is_id(one)) if isinstance(found, list) else frozenset()


def _kind(type: str, data: dict[str, Any]) -> ActionKind:
    kind = KINDS.get(type, ActionKind.OTHER)
    if type == "updateCard" and _object(data, "card").get("closed") is True:
        return ActionKind.CARD_REMOVED if "closed" in _object(data, "old") else kind
    return kind


def _moved(data: dict[str, Any]) -> bool:
    old = _object(data, "old")
    return "idList" in old or "closed" in old or bool(_object(data, "listAfter"))


def _commented(told: Action, data: dict[str, Any]) -> Action:
    """Return a comment, with the name and the text that it has now."""
    inner = _object(data, "action")
    new = told.kind is ActionKind.COMMENT
    comment = told.id if new else _id(inner)
    text = _text(data if new else inner, "text")
    if not (comment and told.card and told.member):
        return _changed(told, kind=ActionKind.OTHER)
    return _changed(told, comment=comment, text=text)


def _whole(told: Action) -> Action:
    """Return an action that has what its kind needs, or one of no kind."""
    needs = {
        ActionKind.LABEL_ADDED: (told.card, told.label),
        ActionKind.LABEL_REMOVED: (told.card, told.label),
        ActionKind.LABEL_DELETED: (told.label,),
        ActionKind.CARD_CHANGED: (told.card,),
        ActionKind.CARD_REMOVED: (told.card,),
    }
    return told if all(needs.get(told.kind, ())) else _changed(told, kind=ActionKind.OTHER)


def _changed(told: Action, **fields: Any) -> Action:
    return Action(**{name: getattr(told, name) for name in told.__slots__} | fields)


def _object(found: Any, name: str) -> dict[str, Any]:
    value = found.get(name) if isinstance(found, dict) else None
    return value if isinstance(value, dict) else {}


def _text(found: dict[str, Any], name: str) -> str:
    value = found.get(name)
    return value if isinstance(value, str) else ""


def _id(found: dict[str, Any]) -> str:
    return _only_id(found.get("id"))


def _only_id(value: Any) -> str:
    return value if is_id(value) else ""
