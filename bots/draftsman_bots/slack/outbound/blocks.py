"""Block Kit, by what Slack takes: whatever text comes in, a valid block comes out. Pure.

Lengths are those of Slack's block and element reference.
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
"""Choices that are buttons; more of them are easier to find in a list."""
TRUNCATED_NOTICE: Final = "… (truncated; the full text is shown in a terminal)"
EMPTY: Final = "\u2013"
"""What stands for a text of nothing, which Slack refuses."""


def section(text: str) -> Block:
    """Return a paragraph of mrkdwn that is escaped already, and short enough."""
    return {"type": "section", "text": _mrkdwn(text)}


def paragraphs(text: str, most: int = 4) -> list[Block]:
    """Return people's text in sections; what is beyond `most` of them is said to be cut."""
    found = [section(piece) for piece in escape_chunks(break_fences(text)) if piece.strip()]
    return found if len(found) <= most else [*found[:most], context(TRUNCATED_NOTICE)]


def code_block(text: str) -> Block:
    """Return people's text as a block of code."""
    return section(code(text))


def context(*texts: str) -> Block:
    """Return small print of mrkdwn that is escaped already; at most ten texts."""
    return {"type": "context", "elements": [_mrkdwn(text) for text in texts if text][:10]}


def actions(elements: Sequence[Block], block_id: str | None = None) -> Block:
    """Return a row of what can be pressed, at most 25."""
    named = {} if block_id is None else {"block_id": block_id}
    return {"type": "actions", "elements": list(elements)[:25], **named}


def button(
    text: str, action: str, value: str, style: str | None = None, confirm: str | None = None
) -> Block:
    """Return a button; with `confirm` it asks first."""
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
    """Return a list to choose from; over 100 options Slack asks the bot for them."""
    if len(options) > MAX_OPTIONS:
        return external_select(action, placeholder)
    return {
        "type": "static_select",
        "action_id": action,
        "placeholder": plain_text(placeholder, PLACEHOLDER),
        "options": list(options),
    }


def external_select(action: str, placeholder: str) -> Block:
    """Return a list whose options Slack asks the bot for when it is opened."""
    return {
        "type": "external_select",
        "action_id": action,
        "placeholder": plain_text(placeholder, PLACEHOLDER),
        "min_query_length": 0,
    }


def option(text: str, value: str, description: str | None = None) -> Block:
    """Return one thing to choose."""
    made: Block = {"text": plain_text(text, OPTION_TEXT), "value": value}
    if description and description.strip():
        made["description"] = plain_text(description, OPTION_TEXT)
    return made


def plain_text(text: str, most: int) -> Block:
    """Return a text that is never parsed."""
    return {"type": "plain_text", "text": truncate(text, most).strip() or EMPTY, "emoji": False}


def local_time(when: datetime) -> str:
    """Return a time that everybody reads in his own zone."""
    said = when.strftime("%Y-%m-%d %H:%M %Z")
    return f"<!date^{int(when.timestamp())}^{{date_short_pretty}} {{time}}|{escape(said)}>"


def bold(text: str, most: int = 500) -> str:
    """Return people's text in bold, on one line."""
    return f"*{escape_truncated(' '.join(text.split()), most) or EMPTY}*"


def _mrkdwn(text: str) -> Block:
    return {"type": "mrkdwn", "text": text if text.strip() else EMPTY, "verbatim": True}
