"""What an approval allows, in words: `push draftsman/D-13 to origin`. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

VERBS: Final = ("action", "do", "verb", "command", "operation")
"""Keys whose text is itself what is done; the first that is there leads."""
PREPOSITIONS: Final = (
    *("of", "from", "in", "on", "into", "to", "at", "for", "with", "as", "by", "via"),
    *("after", "before", "until"),
)
"""Keys that follow what is done, in this order: the database keeps none of its own."""
_PLAIN: Final = re.compile(r"[^\s,()\"]+")
"""A text that needs no quotation marks to stay one."""


def action_text(action: Mapping[str, Any]) -> str:
    """Return an action in words on one line, with all of its keys and values.

    A text with spaces or punctuation is quoted, so that no value reads as another key.
    """
    verb = next((key for key in VERBS if isinstance(action.get(key), str)), None)
    head = [_value(action[verb])] if verb is not None else []
    what = [key for key in action if key != verb and key not in PREPOSITIONS]
    where = [key for key in PREPOSITIONS if key in action]
    phrases = ", ".join(_phrase(key, action[key]) for key in what)
    return " ".join(
        [*head, *filter(None, [phrases]), *(_phrase(key, action[key]) for key in where)]
    )


def _phrase(key: str, value: Any) -> str:
    name = key.replace("_", " ") if _PLAIN.fullmatch(key) else _quoted(key)
    if value is True:
        return name
    return f"{name} {_value(value)}"


def _value(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case str():
            return value if _PLAIN.fullmatch(value) else _quoted(value)
        case Mapping():
            return f"({action_text(value)})"
        case Sequence():
            return f"({', '.join(map(_value, value))})"
        case _:
            return json.dumps(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
