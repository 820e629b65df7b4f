"""Text of the action that an approval allows: `push draftsman/D-13 to origin`. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from draftsman.text import humanize

VERBS: Final = ("action", "do", "verb", "command", "operation")
"""Keys whose value is the verb; the first of them begins the text."""
PREPOSITIONS: Final = (
    "of",
    "from",
    "in",
    "on",
    "into",
    "to",
    "at",
    "for",
    "with",
    "as",
    "by",
    "via",
    "after",
    "before",
    "until",
)
"""Keys that end the text, in this order, since the database does not keep the order of keys."""
POLICY: Final = "policy"
"""Key of the version of the policies that an approval meets: a hash, which ends the text."""
_PLAIN: Final = re.compile(r"[^\s,()\"]+")
"""Text that needs no quotation marks."""
_COMMIT: Final = re.compile(r"[0-9a-f]{12}|[0-9a-f]{40}|[0-9a-f]{64}")
"""A commit, which means nothing to people without that word."""


def action_text(action: Mapping[str, Any]) -> str:
    """Return an action as one line of text with all of its keys and values.

    Text with spaces or punctuation is quoted, so that no value can look like another key.
    """
    verb = next((key for key in VERBS if isinstance(action.get(key), str)), None)
    head = [_value(action[verb])] if verb is not None else []
    last = (verb, POLICY, *PREPOSITIONS) if len(action) > 1 else (verb, *PREPOSITIONS)
    objects = [key for key in action if key not in last]
    adverbials = [key for key in PREPOSITIONS if key in action]
    phrases = ", ".join(_phrase(key, action[key]) for key in objects)
    ends = [_phrase(key, action[key]) for key in adverbials]
    if POLICY in last and POLICY in action:
        ends.append(f"under {_phrase(POLICY, action[POLICY])}")
    return " ".join([*head, *filter(None, [phrases]), *ends])


def _phrase(key: str, value: Any) -> str:
    name = humanize(key) if _PLAIN.fullmatch(key) else _quoted(key)
    if value is True:
        return name
    if key == "on" and isinstance(value, str) and _COMMIT.fullmatch(value):
        name = "on commit"
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
