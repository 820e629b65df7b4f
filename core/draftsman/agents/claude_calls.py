"""Calls of the tools of Claude Code, as people see them."""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from draftsman.agents.inputs import matching_key, stored_value
from draftsman.agents.permissions import Call

ASK: Final = "AskUserQuestion"
"""Tool with which the model asks the person."""
MAX_FILE: Final = 1 << 20
"""Maximum bytes of a file whose text a diff begins with."""
MAX_TEXT: Final = 2500
MAX_VALUE: Final = 150
MAX_DESCRIPTION: Final = 500
"""Maximum characters of a question, a choice and its description."""
SEVERAL: Final = "Several choices are possible: answer in your own words, separated by commas."


def call_of(event: Mapping[str, Any], roots: Mapping[str, str]) -> Call:
    """Return the call of an event of the hook."""
    name = str(event.get("tool_name"))
    given = event.get("tool_input")
    fields = given if isinstance(given, dict) else {}
    tool = {
        "kind": "execute" if name == "Bash" else name,
        "title": name,
        "rawInput": given,
        "content": _diffs(name, fields),
        "cwd": event.get("cwd"),
    }
    return Call.of(tool, roots)


def questions_of(event: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages `ask`, without their keys, of a call of the tool that asks."""
    given = event.get("tool_input")
    listed = given.get("questions") if isinstance(given, dict) else None
    return [_question(item) for item in (listed if isinstance(listed, list) else []) if _asks(item)]


def with_answers(event: Mapping[str, Any], answers: list[str]) -> dict[str, Any]:
    """Return the input of the call with the answers to its questions, in their order."""
    given: dict[str, Any] = event["tool_input"]
    asked = [item["question"] for item in given["questions"] if _asks(item)]
    return {**given, "answers": dict(zip(asked, answers, strict=True))}


def _asks(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("question"), str)


def _question(item: Mapping[str, Any]) -> dict[str, Any]:
    options = item.get("options")
    choices = [
        {
            "value": option["label"],
            "description": str(option.get("description") or "")[:MAX_DESCRIPTION],
        }
        for option in (options if isinstance(options, list) else [])
        if isinstance(option, dict)
        and isinstance(option.get("label"), str)
        and stored_value(option["label"])
    ]
    text = item["question"][:MAX_TEXT] or "…"
    values = [choice["value"] for choice in choices]
    if len({matching_key(value) for value in values}) < len(values) or any(
        len(unicodedata.normalize("NFKC", value)) > MAX_VALUE for value in values
    ):
        text, choices = "\n".join([text, "", *values])[:MAX_TEXT], []
    context = SEVERAL if item.get("multiSelect") is True else None
    return {"text": text, "choices": choices, "freeform": True, "context": context}


def _diffs(name: str, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the change of the file by a call that edits it."""
    path = str(fields.get("file_path") or fields.get("notebook_path") or "")
    if name == "Write":
        return [_diff(path, _text_of(path) or "", str(fields.get("content") or ""))]
    if name == "Edit":
        old, new = str(fields.get("old_string") or ""), str(fields.get("new_string") or "")
        text = _text_of(path)
        if text is None or not old or old not in text:
            return [_diff(path, old, new)]
        count = -1 if fields.get("replace_all") is True else 1
        return [_diff(path, text, text.replace(old, new, count))]
    return []


def _diff(path: str, old: str, new: str) -> dict[str, Any]:
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


def _text_of(path: str) -> str | None:
    """Return the text of a regular file; None if it has none that can be shown."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE:
            return None
        return file.read().decode(errors="replace")
