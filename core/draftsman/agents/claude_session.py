"""Session files of Claude Code: JSON lines, a file for each session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

SESSIONS: Final = ".claude/projects"
"""Folder below HOME."""
MARKS: Final = (b'"hook_deferred_tool"', b'"tool_result"')
"""Texts of the lines that matter; the others are not parsed."""


def transcript_of(session: Any) -> Path | None:
    """Return the file of a session; its folder has the name of an earlier workspace."""
    if not isinstance(session, str):
        return None
    return next((Path.home() / SESSIONS).glob(f"*/{session}.jsonl"), None)


def deferred_call(transcript: Path | None) -> str | None:
    """Return the id of the call that the program makes when the session is resumed."""
    if transcript is None:
        return None
    deferred: str | None = None
    with transcript.open("rb") as lines:
        for line in lines:
            if not any(mark in line for mark in MARKS):
                continue
            try:
                entry = json.loads(line)
            except ValueError:  # the last line of a program that was killed
                continue
            attachment, message = entry.get("attachment"), entry.get("message")
            if isinstance(attachment, dict) and attachment.get("type") == "hook_deferred_tool":
                deferred = str(attachment.get("toolUseID"))
            elif deferred in _results(message):
                deferred = None
    return deferred


def _results(message: Any) -> set[str]:
    content = message.get("content") if isinstance(message, dict) else None
    return {
        str(block.get("tool_use_id"))
        for block in (content if isinstance(content, list) else [])
        if isinstance(block, dict)
    }
