"""Events in the JSON of Gitea and Forgejo, which is almost that of GitHub. Pure.

https://docs.gitea.com/usage/webhooks. Gitea signs the body: `X-Gitea-Signature`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from draftsman.forges.forge_event import Notification, is_signature
from draftsman_bots.forge_kinds import github_events
from draftsman_bots.forge_kinds.github_events import project_of

__all__ = ["is_genuine", "parse", "project_of"]


def is_genuine(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether the forge sent the body, compared in constant time."""
    return is_signature(headers.get("x-gitea-signature", ""), secret, body)


def parse(headers: Mapping[str, str], payload: Mapping[str, Any]) -> Notification:
    """Return the content of a webhook; perhaps without events."""
    event = headers.get("x-gitea-event", "")
    if event.startswith(("pull_request_review", "pull_request_comment")):
        # the payload of a review has no id: the review is read from the API
        return Notification(project_of(payload), changed=True)
    return github_events.parse_event("issues" if event == "issue_label" else event, payload)
