"""Recorded messages of Claude Code, and the shapes of messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

RECORDINGS: Final = Path(__file__).parents[1] / "recordings"
OPEN: Final = ("input", "tool_input", "toolInput", "updatedInput", "tool_use_result", "answers")
"""Keys of objects that depend on the tool."""
Recorded = dict[str, Any]


def recording() -> tuple[str, list[Recorded]]:
    """Return the version of the recording, and its messages."""
    [file] = RECORDINGS.glob("claude-*.jsonl")
    messages = [json.loads(line) for line in file.read_text().splitlines()]
    return file.stem.removeprefix("claude-"), messages


def first_of_each_kind(messages: Iterable[Recorded]) -> dict[str, Recorded]:
    """Return the first message of each kind."""
    found: dict[str, Recorded] = {}
    for item in messages:
        found.setdefault(kind_of(item), item)
    return found


def kind_of(item: Recorded) -> str:
    """Return the kind of a message, which determines its shape."""
    message = item["message"]
    source = item["from"]
    if source.startswith("hook"):
        output = message.get("hookSpecificOutput", {})
        return f"{source} {output.get('permissionDecision', message.get('tool_name'))}"
    parts = [source, message["type"], message.get("subtype", "")]
    if message["type"] in ("assistant", "user") and isinstance(
        content := message["message"]["content"], list
    ):
        parts.append(content[0]["type"])
        parts.append("error" if content[0].get("is_error") else "")
    elif message["type"] == "result":
        parts += [message["stop_reason"], "error" if message["is_error"] else ""]
    elif message["type"] == "control_request":
        parts.append(message["request"]["subtype"])
    return " ".join(filter(None, parts))


def shape_of(message: Any) -> set[str]:
    """Return the paths of all values with their types."""
    return set(_paths(message, ""))


def _paths(value: Any, at: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            name = "*" if at.endswith(("modelUsage", "model_usage_since_last_result")) else key
            if key in OPEN:
                yield f"{at}.{key}"
            else:
                yield from _paths(item, f"{at}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from _paths(item, f"{at}[]")
        yield f"{at}[]"
    else:
        kind = "number" if isinstance(value, float) else type(value).__name__
        yield f"{at}: {'number' if kind == 'int' else kind}"
