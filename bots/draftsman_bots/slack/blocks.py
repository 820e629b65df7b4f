"""Block Kit, by what Slack takes: whatever text comes in, a valid block comes out. Pure.

Lengths are those of Slack's block and element reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from draftsman_bots.slack.text import code, escape, escaped, pieces
from draftsman_bots.text import clamped, fenceless

Block = dict[str, Any]

BLOCKS_MOST: Final = 50
BUTTON_TEXT: Final = 75
OPTION_TEXT: Final = 75
PLACEHOLDER: Final = 150
SELECT_MOST: Final = 100
BUTTONS_MOST: Final = 5
"""Choices that are buttons; more of them are easier to find in a list."""
CUT: Final = "… (cut; a terminal shows it all)"
EMPTY: Final = "\u2013"
"""What stands for a text of nothing, which Slack refuses."""


def section(text: str) -> Block:
    """Return a paragraph of mrkdwn that is escaped already, and short enough."""
    return {"type": "section", "text": _mrkdwn(text)}


def paragraphs(text: str, most: int = 4) -> list[Block]:
    """Return people's text in sections; what is beyond `most` of them is said to be cut."""
    found = [section(piece) for piece in pieces(fenceless(text)) if piece.strip()]
    return found if len(found) <= most else [*found[:most], context(CUT)]


def fenced(text: str) -> Block:
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
        "text": plain(text, BUTTON_TEXT),
        "action_id": action,
        "value": value,
    }
    if style is not None:
        made["style"] = style
    if confirm is not None:
        made["confirm"] = {
            "title": plain(text, 100),
            "text": plain(confirm, 300),
            "confirm": plain(text, 30),
            "deny": plain("Back", 30),
        }
    return made


def select(action: str, options: Sequence[Block], placeholder: str) -> Block:
    """Return a list to choose from; over 100 options Slack asks the bot for them."""
    if len(options) > SELECT_MOST:
        return lookup(action, placeholder)
    return {
        "type": "static_select",
        "action_id": action,
        "placeholder": plain(placeholder, PLACEHOLDER),
        "options": list(options),
    }


def lookup(action: str, placeholder: str) -> Block:
    """Return a list whose options Slack asks the bot for when it is opened."""
    return {
        "type": "external_select",
        "action_id": action,
        "placeholder": plain(placeholder, PLACEHOLDER),
        "min_query_length": 0,
    }


def option(text: str, value: str, description: str | None = None) -> Block:
    """Return one thing to choose."""
    made: Block = {"text": plain(text, OPTION_TEXT), "value": value}
    if description and description.strip():
        made["description"] = plain(description, OPTION_TEXT)
    return made


def plain(text: str, most: int) -> Block:
    """Return a text that is never parsed."""
    return {"type": "plain_text", "text": clamped(text, most).strip() or EMPTY, "emoji": False}


def moment(when: datetime) -> str:
    """Return a time that everybody reads in his own zone."""
    said = when.strftime("%Y-%m-%d %H:%M %Z")
    return f"<!date^{int(when.timestamp())}^{{date_short_pretty}} {{time}}|{escape(said)}>"


def bold(text: str, most: int = 500) -> str:
    """Return people's text in bold, on one line."""
    return f"*{escaped(' '.join(text.split()), most) or EMPTY}*"


def _mrkdwn(text: str) -> Block:
    return {"type": "mrkdwn", "text": text if text.strip() else EMPTY, "verbatim": True}
