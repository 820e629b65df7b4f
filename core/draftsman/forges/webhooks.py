"""Webhooks of forges: their proof of origin, and their content. Pure.

GitHub signs the body (`X-Hub-Signature-256`), Gitea too (`X-Gitea-Signature`), and GitLab repeats
the secret (`X-Gitlab-Token`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from draftsman.forges import github_events, gitlab_events
from draftsman.forges.forge_event import Notification, fields


@dataclass(frozen=True, slots=True)
class WebhookSecrets:
    """The secrets of the webhooks of a forge."""

    default: str | None = field(repr=False)
    by_project: Mapping[str, str] = field(default_factory=dict, repr=False)

    def of(self, project: str) -> str:
        """Return the secret of a repository: its own, else that of the forge, else empty."""
        return self.by_project.get(project, self.default or "")


def claimed_project(kind: str, body: bytes) -> str:
    """Return the repository that a body names before its origin is proven; else empty."""
    payload = fields(_parsed(body))
    if kind == "gitlab":
        return gitlab_events.project_of(payload)
    return github_events.project_of(payload)


def is_genuine(kind: str, secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether the forge sent the body, compared in constant time."""
    if not secret:
        return False
    if kind == "gitlab":
        token = headers.get("x-gitlab-token", "")
        return hmac.compare_digest(token.encode(errors="replace"), secret.encode())
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    expected = digest if kind == "gitea" else f"sha256={digest}"
    name = "x-gitea-signature" if kind == "gitea" else "x-hub-signature-256"
    return hmac.compare_digest(headers.get(name, "").encode(errors="replace"), expected.encode())


def content(kind: str, headers: Mapping[str, str], body: bytes) -> Notification | None:
    """Return the content of a genuine webhook; None if it is not a JSON object."""
    payload = _parsed(body)
    if not isinstance(payload, dict):
        return None
    if kind == "gitlab":
        return gitlab_events.parse(headers.get("x-gitlab-event", ""), payload)
    event = headers.get("x-gitea-event" if kind == "gitea" else "x-github-event", "")
    if kind == "gitea" and event.startswith(("pull_request_review", "pull_request_comment")):
        # Gitea's payload of a review has no id: the review is read from the API
        return Notification(github_events.project_of(payload), changed=True)
    event = {"issue_label": "issues"}.get(event, event) if kind == "gitea" else event
    return github_events.parse(event, payload)


def _parsed(body: bytes) -> object:
    """Return the JSON of a body; None if it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
