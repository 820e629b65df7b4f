"""The REST interface; to import it registers every call."""

from __future__ import annotations

from draftsman_testing.trello.methods import (
    actions,
    attachments,
    boards,
    cards,
    checklists,
    labels,
    lists,
    members,
    webhooks,
)

__all__ = [
    "actions",
    "attachments",
    "boards",
    "cards",
    "checklists",
    "labels",
    "lists",
    "members",
    "webhooks",
]
