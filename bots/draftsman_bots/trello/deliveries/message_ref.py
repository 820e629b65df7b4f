"""References to delivered messages, and their match by marker. Pure.

The reference of a comment is the id of its action, as in webhooks and lists; that of a file is the
id of the attachment.
"""

from __future__ import annotations

from typing import Any, Final

from draftsman.deliveries.delivery import Message
from draftsman_bots.json_fields import nested, string
from draftsman_bots.text import truncate
from draftsman_bots.trello.deliveries.markdown import MAX_NAME, marker_of

_TAG: Final = 13
"""Characters of the marker in the title of a file: enough to tell the files of one job."""


def file_title(message: Message, name: str) -> str:
    """Return a title that contains the marker: an attachment has no other field for it."""
    tag = f" · {message.marker[:_TAG]}"
    return truncate(name, MAX_NAME - len(tag)) + tag


def comment_text(action: Any) -> str:
    """Return the text of a comment; empty for any other action."""
    return string(nested(action, "data"), "text")


def matches(message: Message, action: Any) -> bool:
    """Return whether an action is the comment of a message."""
    return marker_of(comment_text(action)) == message.marker


def file_matches(message: Message, attachment: Any) -> bool:
    """Return whether an attachment is the file of a message."""
    return string(attachment, "name").endswith(f" · {message.marker[:_TAG]}")
