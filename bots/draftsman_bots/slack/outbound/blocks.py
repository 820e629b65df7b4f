"""Builders of Block Kit blocks, valid for any text. Pure.

The limits are those of Slack's block and element reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from draftsman_bots.slack.mrkdwn import code, escape, escape_chunks, escape_truncated
from draftsman_bots.text import break_fences, truncate

Block = dict[str, Any]

MAX_BLOCKS: Final = 50
BUTTON_TEXT: Final = 75
OPTION_TEXT: Final = 75
PLACEHOLDER: Final = 150
MAX_OPTIONS: Final = 100
MAX_BUTTONS: Final = 5
"""Choices that are shown as buttons; more are shown as a select."""
TRUNCATED_NOTICE: Final = "… (truncated; the full text is shown in a terminal)"
EMPTY: Final = "\u2013"
"""Replacement for empty text, which Slack rejects."""


def section(text: str) -> Block:
    """Return a section; the mrkdwn must be escaped and short enough."""
    return {"type": "section", "text": _mrkdwn(text)}


def paragraphs(text: str, most: int = 4) -> list[Block]:
    """Return user text in sections, with a notice if more than `most` are needed."""
    found = [section(piece) for piece in escape_chunks(break_fences(text)) if piece.strip()]
    return found if len(found) <= most else [*found[:most], context(TRUNCATED_NOTICE)]


def code_block(text: str) -> Block:
    """Return user text as a code block."""
    return section(code(text))


def context(*texts: str) -> Block:
    """Return a context block of escaped mrkdwn; at most ten texts."""
    return {"type": "context", "elements": [_mrkdwn(text) for text in texts if text][:10]}


def actions(elements: Sequence[Block], block_id: str | None = None) -> Block:
    """Return an actions block with at most 25 elements."""
    named = {} if block_id is None else {"block_id": block_id}
    return {"type": "actions", "elements": list(elements)[:25], **named}


def button(
    text: str, action: str, value: str, style: str | None = None, confirm: str | None = None
) -> Block:
    """Return a button; `confirm` is the text of its confirmation dialog."""
    made = {
        "type": "button",
        "text": plain_text(text, BUTTON_TEXT),
        "action_id": action,
        "value": value,
    }
    if style is not None:
        made["style"] = style
    if confirm is not None:
        made["confirm"] = {
            "title": plain_text(text, 100),
            "text": plain_text(confirm, 300),
            "confirm": plain_text(text, 30),
            "deny": plain_text("Back", 30),
        }
    return made


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


def option(text: str, value: str, description: str | None = None) -> Block:
    """Return an option of a select."""
    made: Block = {"text": plain_text(text, OPTION_TEXT), "value": value}
    if description and description.strip():
        made["description"] = plain_text(description, OPTION_TEXT)
    return made


def plain_text(text: str, most: int) -> Block:
    """Return a plain_text object, truncated."""
    return {"type": "plain_text", "text": truncate(text, most).strip() or EMPTY, "emoji": False}


def local_time(when: datetime) -> str:
    """Return a time that Slack shows in the reader's time zone."""
    said = when.strftime("%Y-%m-%d %H:%M %Z")
    return f"<!date^{int(when.timestamp())}^{{date_short_pretty}} {{time}}|{escape(said)}>"


def bold(text: str, most: int = 500) -> str:
    """Return user text in bold, on one line."""
    return f"*{escape_truncated(' '.join(text.split()), most) or EMPTY}*"


def _mrkdwn(text: str) -> Block:
    return {"type": "mrkdwn", "text": text if text.strip() else EMPTY, "verbatim": True}
