"""Webhooks of forges: their proof of origin, and their content. Pure.

GitHub signs the body (`X-Hub-Signature-256`), Gitea too (`X-Gitea-Signature`), and GitLab repeats
the secret (`X-Gitlab-Token`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping

from draftsman.domain.forges import github_events, gitlab_events
from draftsman.domain.forges.forge_event import Notification


def is_genuine(kind: str, secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether the forge sent the body, compared in constant time."""
    if not secret:
        return False
    if kind == "gitlab":
        given = headers.get("x-gitlab-token", "")
        return hmac.compare_digest(given.encode(errors="replace"), secret.encode())
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    expected = digest if kind == "gitea" else f"sha256={digest}"
    name = "x-gitea-signature" if kind == "gitea" else "x-hub-signature-256"
    return hmac.compare_digest(headers.get(name, "").encode(errors="replace"), expected.encode())


def content(kind: str, headers: Mapping[str, str], body: bytes) -> Notification | None:
    """Return the content of a genuine webhook; None if it is not a JSON object."""
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        return None
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
