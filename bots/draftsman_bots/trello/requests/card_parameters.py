"""Parser of the parameters of a template in the description of a card. Pure.

A line `NAME: VALUE` sets a parameter, also as an item of a list; all other lines are text. Trello's
editor escapes signs and makes links of addresses, which is undone unless the value is code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_LINE: Final = re.compile(
    r"[ \t]{0,20}(?:[-*+][ \t]+)?[*_`]{0,3}([A-Za-z_](?:[A-Za-z0-9_]|\\_){0,200})[*_`]{0,3}"
    r"[ \t]{0,20}:[*_]{0,3}(?:[ \t]+(.*))?"
)
_CODE: Final = re.compile(r"(`{1,3})([^`]+)\1")
_LINK: Final = re.compile(r"!?\[[^\[\]]{0,2000}\]\(([^()\s]{0,2000})(?:\s\"[^\"]{0,1000}\")?\)")
_ADDRESS: Final = re.compile(r"<(https?://[^<>\s]{1,2000})>")
_ESCAPED: Final = re.compile(r"\\([\\`*_{}\[\]()#+\-.!~|<>@:&])")
TITLE: Final = "title"
DESCRIPTION: Final = "description"
URL: Final = "url"


@dataclass(frozen=True, slots=True)
class CardParameters:
    """The values of parameters on a card, and problems by parameter."""

    values: dict[str, str]
    problems: dict[str, str] = field(default_factory=dict)


def read_parameters(names: Collection[str], ticket: Mapping[str, Any]) -> CardParameters:
    """Return the values on a card for these parameters.

    Without a line, `title`, `description` and `url` are those of the card, its description without
    the lines of parameters.
    """
    by_key = {name.casefold(): name for name in names}
    values: dict[str, str] = {}
    problems: dict[str, str] = {}
    text: list[str] = []
    for line in str(ticket.get("description") or "").splitlines():
        match = _LINE.fullmatch(line)
        key = match[1].replace("\\", "") if match else ""
        name = key if key in names else by_key.get(key.casefold())
        if match is None or name is None:
            text.append(line)
        elif name in values:
            problems[name] = "is on two lines; write a single line"
        elif value := _value(match[2] or ""):
            values[name] = value
    card = {TITLE: ticket.get("title"), DESCRIPTION: "\n".join(text), URL: ticket.get("url")}
    for name, content in card.items():
        if name in names and name not in values and (plain := str(content or "").strip()):
            values[name] = plain
    return CardParameters(values, problems)


def _value(text: str) -> str:
    """Return a value as it was typed."""
    text = text.strip()
    if (code := _CODE.fullmatch(text)) is not None:
        return code[2].strip()
    for pattern in (_LINK, _ADDRESS):
        if (match := pattern.fullmatch(text)) is not None:
            return match[1]
    return _ESCAPED.sub(r"\1", text)
