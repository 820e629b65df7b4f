"""Parser of Trello actions from webhooks and polls. Pure.

Trello omits fields, sends null, and adds fields and types without notice. An action that lacks a
required field has the kind OTHER and is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from draftsman.formats.received_json import read_object
from draftsman_bots.json_fields import nested, string
from draftsman_bots.trello.ids import is_id, parse_time


class ActionKind(StrEnum):
    """Kind of an action."""

    LABEL_ADDED = "label_on"
    LABEL_REMOVED = "label_off"
    LABEL_DELETED = "label_gone"
    """A label of the board was deleted."""
    CARD_CHANGED = "card_here"
    """A card was created, changed or moved, and may have labels."""
    CARD_REMOVED = "card_gone"
    """A card was archived or deleted."""
    FILE_ATTACHED = "file_attached"
    """A file or a link was attached to a card."""
    ITEM_CHECKED = "item_checked"
    """An item of a checklist was checked or unchecked."""
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
    "addAttachmentToCard": ActionKind.FILE_ATTACHED,
    "updateCheckItemStateOnCard": ActionKind.ITEM_CHECKED,
    "commentCard": ActionKind.COMMENT,
    "updateComment": ActionKind.COMMENT_EDITED,
    "deleteComment": ActionKind.COMMENT_DELETED,
}
EDITABLE: Final = frozenset({"name", "desc"})
"""Card fields that a job reads."""
LISTED_TYPES: Final = (
    "commentCard,updateCard,deleteCard,moveCardToBoard,updateCheckItemStateOnCard,"
    "addAttachmentToCard"
)
"""Action types to request: of the types above, those that a board's actions can have."""


@dataclass(frozen=True, slots=True)
class Action:
    """A change on a board.

    `comment` is the id of the comment that was created, edited or deleted, `text` its current text.
    `moved`: the card changed its list or its archived state; `edited`: its title or description
    changed; `rescheduled`: its due date changed to `due`, or was removed.
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
    rescheduled: bool = False
    due: datetime | None = None
    attachment: str = ""
    checklist: str = ""
    item: str = ""
    item_name: str = ""
    checked: bool = False
    type: str = ""


def parse_body(raw: bytes) -> Any:
    """Return the action in a webhook's body, or None if there is none."""
    return (read_object(raw) or {}).get("action")


def parse_action(raw: Any) -> Action | None:
    """Parse a JSON action; return None if it is not valid."""
    if not isinstance(raw, dict) or not is_id(raw.get("id")):
        return None
    data = nested(raw, "data")
    member = nested(raw, "memberCreator")
    action = Action(
        id=raw["id"],
        kind=_kind(string(raw, "type"), data),
        board=_id(nested(data, "board")),
        card=_id(nested(data, "card")),
        label=_id(nested(data, "label")),
        member=_id(member) or _valid_id(raw.get("idMemberCreator")),
        name=string(member, "fullName") or string(member, "username"),
        username=string(member, "username"),
        date=parse_time(raw.get("date")),
        moved=_moved(data),
        edited=not EDITABLE.isdisjoint(nested(data, "old")),
        rescheduled="due" in nested(data, "old"),
        due=parse_time(nested(data, "card").get("due")),
        attachment=_id(nested(data, "attachment")),
        checklist=_id(nested(data, "checklist")),
        item=_id(nested(data, "checkItem")),
        item_name=string(nested(data, "checkItem"), "name"),
        checked=nested(data, "checkItem").get("state") == "complete",
        type=string(raw, "type")[:60],
    )
    if action.kind.startswith("comment"):
        return _with_comment(action, data)
    return _validated(action)


def card_label_ids(card: Any) -> frozenset[str]:
    """Return the ids of the labels on a card."""
    ids = card.get("idLabels") if isinstance(card, dict) else None
    return frozenset(id for id in ids if is_id(id)) if isinstance(ids, list) else frozenset()


def _kind(type: str, data: dict[str, Any]) -> ActionKind:
    kind = KINDS.get(type, ActionKind.OTHER)
    if type == "updateCard" and nested(data, "card").get("closed") is True:
        return ActionKind.CARD_REMOVED if "closed" in nested(data, "old") else kind
    return kind


def _moved(data: dict[str, Any]) -> bool:
    old = nested(data, "old")
    return "idList" in old or "closed" in old or bool(nested(data, "listAfter"))


def _with_comment(action: Action, data: dict[str, Any]) -> Action:
    """Add the id and the current text of the comment."""
    inner = nested(data, "action")
    new = action.kind is ActionKind.COMMENT
    comment = action.id if new else _id(inner)
    text = string(data if new else inner, "text")
    if not (comment and action.card and action.member):
        return _replace(action, kind=ActionKind.OTHER)
    return _replace(action, comment=comment, text=text)


def _validated(action: Action) -> Action:
    """Return the action, as OTHER if it lacks a field that its kind requires."""
    required = {
        ActionKind.LABEL_ADDED: (action.card, action.label),
        ActionKind.LABEL_REMOVED: (action.card, action.label),
        ActionKind.LABEL_DELETED: (action.label,),
        ActionKind.CARD_CHANGED: (action.card,),
        ActionKind.CARD_REMOVED: (action.card,),
        ActionKind.FILE_ATTACHED: (action.card, action.attachment, action.member),
        ActionKind.ITEM_CHECKED: (action.card, action.item, action.member),
    }
    return action if all(required.get(action.kind, ())) else _replace(action, kind=ActionKind.OTHER)


def _replace(action: Action, **fields: Any) -> Action:
    return Action(**{name: getattr(action, name) for name in action.__slots__} | fields)


def _id(raw: dict[str, Any]) -> str:
    return _valid_id(raw.get("id"))


def _valid_id(value: Any) -> str:
    return value if is_id(value) else ""
