"""Events in the JSON of GitLab. Pure.

https://docs.gitlab.com/user/project/integrations/webhook_events. GitLab repeats the secret:
`X-Gitlab-Token`.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any, Final

from draftsman.forges.forge_event import (
    MAX_ISSUE,
    EventKind,
    ForgeEvent,
    Notification,
    account_id,
    fields,
    label_key,
    moment,
    number,
    plain,
    version,
)
from draftsman_bots.json_fields import objects

CHANGES: Final = frozenset({"Pipeline Hook", "Job Hook", "Push Hook"})
"""Events after which checks and conflicts are read."""
BOT_LOGIN: Final = ("project_", "group_")
"""Beginnings of the logins of access tokens, which end with `_bot` and digits."""


def is_genuine(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether the forge sent the body, compared in constant time."""
    token = headers.get("x-gitlab-token", "")
    return hmac.compare_digest(token.encode(errors="replace"), secret.encode())


def parse(headers: Mapping[str, str], payload: Mapping[str, Any]) -> Notification:
    """Return the content of a webhook; perhaps without events."""
    event = headers.get("x-gitlab-event", "")
    project = project_of(payload)
    item = fields(payload.get("object_attributes"))
    user = fields(payload.get("user"))
    match event.removeprefix("Confidential "):  # of an issue or note with this mark
        case "Note Hook":
            events = _noted(project, payload, item, user)
        case "Merge Request Hook" if item.get("action") == "merge":
            end = ended(project, item)
            events = () if end is None else (end,)
        case "Issue Hook":
            events = _labeled(project, payload, item, user)
        case _:
            return Notification(project, changed=event in CHANGES or event == "Merge Request Hook")
    return Notification(project, events)


def project_of(payload: Mapping[str, Any]) -> str:
    """Return the project of a payload, in lower case; else empty."""
    return str(fields(payload.get("project")).get("path_with_namespace") or "").casefold()


def note(project: str, pull: int, item: Mapping[str, Any], thread: str, by: object) -> ForgeEvent:
    """Return the event of a note on a merge request: a comment, or a comment on lines."""
    position = fields(item.get("position"))
    path = position.get("new_path") or position.get("old_path")
    kind = EventKind.REVIEW_THREAD if path else EventKind.COMMENT
    login = str(fields(by).get("username") or "")
    body = item.get("note") or item.get("body")
    return ForgeEvent(
        kind,
        project,
        pull,
        f"{'thread' if path else 'comment'}:{item.get('id')}:{version(body)}",
        author=login,
        author_id=account_id(fields(by)),
        is_bot=_is_bot(login),
        text=plain(body),
        path=str(path) if path else None,
        line=number(position.get("new_line") or position.get("old_line")) or None,
        commit=str(position.get("head_sha") or "") or None,
        thread=thread if path else None,
        url=str(item.get("url") or "") or None,
        at=moment(item.get("updated_at")),
    )


def ended(project: str, item: Mapping[str, Any]) -> ForgeEvent | None:
    """Return the event of a merge request that is merged or closed; None while it is open."""
    state = item.get("state")
    if state not in ("merged", "closed"):
        return None
    merged = state == "merged"
    return ForgeEvent(
        EventKind.MERGED if merged else EventKind.CLOSED,
        project,
        number(item.get("iid")),
        "merged" if merged else f"closed:{item.get('closed_at') or ''}",
        commit=str(item.get("sha") or fields(item.get("last_commit")).get("id") or "") or None,
        url=str(item.get("web_url") or item.get("url") or "") or None,
        at=moment(item.get("merged_at") or item.get("updated_at")),
    )


def conflict(project: str, item: Mapping[str, Any]) -> ForgeEvent:
    """Return the event of a merge request that conflicts with its target, once for each commit."""
    return ForgeEvent(
        EventKind.CONFLICT,
        project,
        number(item.get("iid")),
        f"conflict:{item.get('sha')}",
        title=str(item.get("target_branch") or ""),
        commit=str(item.get("sha") or ""),
        url=str(item.get("web_url") or "") or None,
    )


def labeled_issue(
    project: str, issue: Mapping[str, Any], label: str, by: Mapping[str, Any]
) -> ForgeEvent:
    """Return the event of an issue with a label; `by` is the account that gave it, if known."""
    login = str(by.get("username") or "")
    return ForgeEvent(
        EventKind.LABELED_ISSUE,
        project,
        number(issue.get("iid")),
        label_key(number(issue.get("iid")), label, issue.get("updated_at")),
        author=login,
        author_id=account_id(by),
        is_bot=_is_bot(login),
        title=plain(issue.get("title"))[:300],
        text=plain(issue.get("description"), MAX_ISSUE),
        label=label,
        url=str(issue.get("url") or issue.get("web_url") or "") or None,
        at=moment(issue.get("updated_at")),
    )


def _noted(
    project: str, payload: Mapping[str, Any], item: Mapping[str, Any], user: Mapping[str, Any]
) -> tuple[ForgeEvent, ...]:
    is_of_another = item.get("author_id") != user.get("id")  # maintainers edit notes of others
    if item.get("system") or is_of_another:
        return ()
    if item.get("noteable_type") == "MergeRequest":
        pull = number(fields(payload.get("merge_request")).get("iid"))
        return (note(project, pull, item, str(item.get("discussion_id") or ""), user),)
    if item.get("noteable_type") != "Issue":
        return ()
    issue = number(fields(payload.get("issue")).get("iid"))
    return (issue_note(project, issue, item, user),)


def issue_note(project: str, issue: int, item: Mapping[str, Any], by: object) -> ForgeEvent:
    """Return the event of a note on an issue."""
    login = str(fields(by).get("username") or "")
    body = item.get("note") or item.get("body")
    return ForgeEvent(
        EventKind.ISSUE_COMMENT,
        project,
        issue,
        f"issue-comment:{item.get('id')}:{version(body)}",
        author=login,
        author_id=account_id(fields(by)),
        is_bot=_is_bot(login),
        text=plain(body),
        url=str(item.get("url") or "") or None,
        at=moment(item.get("updated_at")),
    )


def _labeled(
    project: str, payload: Mapping[str, Any], item: Mapping[str, Any], user: Mapping[str, Any]
) -> tuple[ForgeEvent, ...]:
    change = fields(fields(payload.get("changes")).get("labels"))
    before = _titles(change, "previous")
    current = _titles(change, "current") if change else _titles(payload, "labels")
    names = [name for name in current if name and name not in before]
    return tuple(labeled_issue(project, item, name, user) for name in names)


def _titles(payload: Mapping[str, Any], name: str) -> list[str]:
    return [str(label.get("title") or "") for label in objects(payload, name)]


def _is_bot(login: str) -> bool:
    return login.startswith(BOT_LOGIN) and "_bot" in login
