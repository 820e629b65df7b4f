"""Builders of Block Kit blocks, valid for any text. Pure.

The limits are those of Slack's block and element reference.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, Final

from draftsman.deliveries.documents.document import Text
from draftsman.formats.truncation import utf16_length
from draftsman_bots.slack.deliveries.mrkdwn import MAX_TEXT, code, escape_chunks, escape_truncated
from draftsman_bots.text import truncate

Block = dict[str, Any]

MAX_BLOCKS: Final = 50
BUTTON_TEXT: Final = 75
OPTION_TEXT: Final = 75
PLACEHOLDER: Final = 150
MAX_OPTIONS: Final = 100
MAX_BUTTONS: Final = 5
"""Choices that are shown as buttons; more are shown as a select."""
EMPTY: Final = "\u2013"
"""Replacement for empty text, which Slack rejects."""


def section(text: str) -> Block:
    """Return a section; the mrkdwn must be escaped and short enough."""
    return {"type": "section", "text": _mrkdwn(text)}


def paragraphs(text: str | Text, max_sections: int, notice: str) -> list[Block]:
    """Return user text in sections, with any notice if more than `max_sections` are needed."""
    sections = [section(piece) for piece in escape_chunks(text) if piece.strip()]
    if len(sections) <= max_sections:
        return sections
    return [*sections[:max_sections], *contexts(notice)]


def code_block(text: str) -> Block:
    """Return user text as a code block."""
    return section(code(text))


def context(*texts: str) -> Block:
    """Return a context block of escaped mrkdwn; at most ten texts."""
    return {"type": "context", "elements": [_mrkdwn(text) for text in texts if text][:10]}


def contexts(*texts: str) -> list[Block]:
    """Return context blocks of any number of texts."""
    shown = [text for text in texts if text]
    return [context(*shown[start : start + 10]) for start in range(0, len(shown), 10)]


def actions(elements: Sequence[Block], block_id: str | None = None) -> Block:
    """Return an actions block with at most 25 elements."""
    fields = {} if block_id is None else {"block_id": block_id}
    return {"type": "actions", "elements": list(elements)[:25], **fields}


def button(
    text: str, action: str, value: str, *, style: str | None = None, confirm: str | None = None
) -> Block:
    """Return a button; `confirm` is the text of its confirmation dialog."""
    element = {
        "type": "button",
        "text": plain_text(text, BUTTON_TEXT),
        "action_id": action,
        "value": value,
    }
    if style is not None:
        element["style"] = style
    if confirm is not None:
        element["confirm"] = {
            "title": plain_text(text, 100),
            "text": plain_text(confirm, 300),
            "confirm": plain_text(text, 30),
            "deny": plain_text("Back", 30),
        }
    return element


def select(action: str, options: Sequence[Block], placeholder: str) -> Block:
    """Return a select, external if it has over 100 options."""
    if len(options) > MAX_OPTIONS:
        return external_select(action, placeholder)
    return {
        "type": "static_select",
        "action_id": action,
        "placeholder": plain_text(placeholder, PLACEHOLDER),
        "options": list(options),
    }


def external_select(action: str, placeholder: str) -> Block:
    """Return a select whose options Slack requests when it is opened."""
    return {
        "type": "external_select",
        "action_id": action,
        "placeholder": plain_text(placeholder, PLACEHOLDER),
        "min_query_length": 0,
    }


def users_select(action: str, placeholder: str) -> Block:
    """Return a select of the users of the workspace."""
    return {
        "type": "users_select",
        "action_id": action,
        "placeholder": plain_text(placeholder, PLACEHOLDER),
    }


def option(text: str, value: str, description: str | None = None) -> Block:
    """Return an option of a select."""
    element: Block = {"text": plain_text(text, OPTION_TEXT), "value": value}
    if description and description.strip():
        element["description"] = plain_text(description, OPTION_TEXT)
    return element


def plain_text(text: str, max_length: int) -> Block:
    """Return a plain_text object, truncated."""
    return {
        "type": "plain_text",
        "text": truncate(text, max_length).strip() or EMPTY,
        "emoji": False,
    }


def is_code_cut(text: str) -> bool:
    """Return whether a code block does not have the whole text, which escapes lengthen."""
    return utf16_length(code(text, sys.maxsize)) > MAX_TEXT


def bold(text: str, max_length: int = 2500) -> str:
    """Return user text in bold, on one line."""
    return f"*{escape_truncated(' '.join(text.split()), max_length) or EMPTY}*"


def _mrkdwn(text: str) -> Block:
    return {"type": "mrkdwn", "text": text if text.strip() else EMPTY, "verbatim": True}


# The size of a message: the limits of Slack for all its blocks together. Pure.
#
# Slack refuses a message whose blocks are too large together with `msg_blocks_too_long`. The limit
# is not documented; public reports of the error begin at 11,341 characters (bolt-js issue 2867) and
# name about 13,200 (bolt-js issue 2509).


MAX_SIZE: Final = 11_000
"""Characters of all blocks as JSON: below the smallest size reported as rejected."""


def size(blocks: Sequence[Block]) -> int:
    """Return the size of the blocks as JSON, in UTF-16 units."""
    return utf16_length(json.dumps(blocks, ensure_ascii=False, separators=(",", ":")))


def fits(blocks: Sequence[Block]) -> bool:
    """Return whether Slack accepts these blocks as one message."""
    return len(blocks) <= MAX_BLOCKS and size(blocks) <= MAX_SIZE
