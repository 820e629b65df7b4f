"""What the bot needs to be allowed, and why. The manifests in `config/` ask for exactly this."""

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
)
"""Commands, buttons, modals, mentions and direct messages: it reads no channel."""
FULL: Final = (*MINIMAL, "channels:history", "groups:history", "mpim:history", "mpim:read")
"""Also replies in threads without a mention, and looking for what may have been posted."""

REPLIES: Final = frozenset({"channels:history", "groups:history", "mpim:history"})
"""With these Slack delivers replies that do not mention the bot; a direct message needs none."""

METHODS: Final[Mapping[str, str | None]] = {
    "apps.connections.open": None,
    "auth.test": None,
    "chat.postEphemeral": "chat:write",
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "conversations.history": "channels:history",
    "conversations.info": "channels:read",
    "conversations.members": "channels:read",
    "conversations.open": "im:write",
    "conversations.replies": "channels:history",
    "files.completeUploadExternal": "files:write",
    "files.getUploadURLExternal": "files:write",
    "views.open": None,
    "views.publish": None,
    "views.update": None,
}
"""Every method of the Web API that is called, and the scope that it takes in a public channel."""
EVENTS: Final[Mapping[str, str | None]] = {
    "app_home_opened": None,
    "app_mention": "app_mentions:read",
    "app_uninstalled": None,
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.im": "im:history",
    "message.mpim": "mpim:history",
    "tokens_revoked": None,
}
"""Every event that is listened for, and the scope that it takes."""


def granted(headers: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the scopes of the token, which each answer of the Web API lists; None: not said."""
    listed = next((text for name, text in headers.items() if name.lower() == "x-oauth-scopes"), "")
    return frozenset(scope.strip() for scope in str(listed).split(",")) - {""} or None
