"""OAuth scopes, Web API methods and events of the app; the manifests in `config/` match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MINIMAL: Final = (
    "commands",
    "chat:write",
    "files:write",
    "app_mentions:read",
    "im:history",
    "im:write",
    "channels:read",
    "groups:read",
    "users:read",
)
"""Commands, buttons, modals, mentions and direct messages, but no channel history."""
FULL: Final = (
    *MINIMAL,
    "channels:history",
    "groups:history",
    "mpim:history",
    "mpim:read",
    "files:read",
    "reactions:read",
    "assistant:write",
)
"""Also replies in threads without a mention, the search for posted messages, and files."""

REPLIES: Final = frozenset({"channels:history", "groups:history", "mpim:history"})
"""Scopes for replies that do not mention the bot; direct messages need none."""

METHODS: Final[Mapping[str, str | None]] = {
    "agents.sessions.setStatus": "chat:write",
    "apps.connections.open": None,
    "assistant.threads.setStatus": "chat:write",
    "assistant.threads.setSuggestedPrompts": "assistant:write",
    "auth.test": None,
    "chat.appendStream": "chat:write",
    "chat.delete": "chat:write",
    "chat.postEphemeral": "chat:write",
    "chat.postMessage": "chat:write",
    "chat.startStream": "chat:write",
    "chat.stopStream": "chat:write",
    "chat.update": "chat:write",
    "conversations.history": "channels:history",
    "conversations.info": "channels:read",
    "conversations.members": "channels:read",
    "conversations.open": "im:write",
    "conversations.replies": "channels:history",
    "files.completeUploadExternal": "files:write",
    "files.delete": "files:write",
    "files.getUploadURLExternal": "files:write",
    "files.info": "files:read",
    "reactions.get": "reactions:read",
    "users.info": "users:read",
    "views.open": None,
    "views.publish": None,
    "views.update": None,
}
"""Each called method of the Web API, and its scope in a public channel."""
EVENTS: Final[Mapping[str, str | None]] = {
    "agent_session_stopped": "assistant:write",
    "app_home_opened": None,
    "app_mention": "app_mentions:read",
    "app_uninstalled": None,
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.im": "im:history",
    "message.mpim": "mpim:history",
    "reaction_added": "reactions:read",
    "reaction_removed": "reactions:read",
    "tokens_revoked": None,
}
"""Each subscribed event, and its scope."""


def granted(headers: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the token's scopes from the headers of a Web API response; None if absent."""
    listed = next((text for name, text in headers.items() if name.lower() == "x-oauth-scopes"), "")
    return frozenset(scope.strip() for scope in str(listed).split(",")) - {""} or None
