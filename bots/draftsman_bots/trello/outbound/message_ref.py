"""Where a message is in Trello: what a Receipt calls it, and what it is found by. Pure.

A comment is called by its action's id, which webhooks and lists name as well; a file by its own.
"""

from __future__ import annotations

from typing import Any, Final

from draftsman.domain.messages.delivery import Message
from draftsman_bots.text import truncate
from draftsman_bots.trello.markdown import MAX_NAME, marker_of

_TAG: Final = 13
"""Characters of the marker in the title of a file: enough to tell the files of one job."""


def file_title(message: Message, name: str) -> str:
    """Return the title of a file, by which it is found: files carry nothing else."""
    tag = f" · {message.marker[:_TAG]}"
    return truncate(name, MAX_NAME - len(tag)) + tag


def comment_text(action: Any) -> str:
    """Return the text of a comment; empty for anything else."""
    data = action.get("data") if isinstance(action, dict) else None
    text = data.get("text") if isinstance(data, dict) else None
    return text if isinstance(text, str) else ""


def matches(message: Message, action: Any) -> bool:
    """Return whether this action is that message."""
    return marker_of(comment_text(action)) == message.marker


def file_matches(message: Message, attachment: Any) -> bool:
    """Return whether this attachment is that message."""
    name = attachment.get("name") if isinstance(attachment, dict) else None
    return isinstance(name, str) and name.endswith(f" · {message.marker[:_TAG]}")
