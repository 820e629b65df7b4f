"""The methods of the Web API; the import registers them."""

from __future__ import annotations

from draftsman_testing.slack.methods import (
    apps,
    assistant,
    blocks,
    chat,
    conversations,
    files,
    people,
    streams,
    views,
)

__all__ = [
    "apps",
    "assistant",
    "blocks",
    "chat",
    "conversations",
    "files",
    "people",
    "streams",
    "views",
]
