"""Methods of the Web API, by their namespaces."""

from __future__ import annotations

from tests.support.slack.methods import (
    apps,
    assistant,
    chat,
    conversations,
    files,
    people,
    streams,
    views,
)

__all__ = ["apps", "assistant", "chat", "conversations", "files", "people", "streams", "views"]
