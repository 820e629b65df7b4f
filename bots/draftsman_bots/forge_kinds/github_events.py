"""Events in the JSON of GitHub and, where it is the same, of Gitea. Pure.

https://docs.github.com/en/webhooks/webhook-events-and-payloads. GitHub signs the body:
`X-Hub-Signature-256`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from draftsman.forges.forge_event import (
    MAX_ISSUE,
    EventKind,
    ForgeEvent,
    Notification,
    account_id,
    fields,
    is_signature,
    label_key,
    moment,
    number,
    plain,
    version,
)
from draftsman_bots.json_fields import objects

CHANGES: Final = frozenset({"check_run", "check_suite", "status", "push", "workflow_run"})
"""Events after which checks and conflicts are read."""
WRITTEN: Final = frozenset({"created", "edited"})


def is_genuine(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether the forge sent the body, compared in constant time."""
    signature = headers.get("x-hub-signature-256", "")
    return is_signature(signature, secret, body, prefix="sha256=")


def parse(headers: Mapping[str, str], payload: Mapping[str, Any]) -> Notification:
    """Return the content of a webhook; perhaps without events."""
    return parse_event(headers.get("x-github-event", ""), payload)


def parse_event(event: str, payload: Mapping[str, Any]) -> Notification:
    """Return the content of an event with this name; perhaps without events."""
    project = project_of(payload)
    action = str(payload.get("action") or "")
    parsed: ForgeEvent | None = None
    if action == "edited" and _is_of_another(payload):
        return Notification(project)
    match event:
        case "issue_comment" if action in WRITTEN:
            issue = fields(payload.get("issue"))
            # GitHub leaves it out of an issue, and Gitea has null
            is_pull = issue.get("pull_request") is not None or bool(payload.get("is_pull"))
            kind = EventKind.COMMENT if is_pull else EventKind.ISSUE_COMMENT
            parsed = comment(project, number(issue.get("number")), payload.get("comment"), kind)
        case "pull_request_review_comment" if action in WRITTEN:
            pull = fields(payload.get("pull_request"))
            parsed = thread_comment(project, number(pull.get("number")), payload.get("comment"))
        case "pull_request_review" if action in ("submitted", "edited"):
            pull = fields(payload.get("pull_request"))
            parsed = review(project, number(pull.get("number")), payload.get("review"))
        case "pull_request" if action == "closed":
            parsed = ended(project, fields(payload.get("pull_request")))
        case "issues" if action in ("labeled", "label_updated"):
            return Notification(project, labeled(project, payload))
        case _:
            changed = event in CHANGES or event.startswith("pull_request")
            return Notification(project, changed=changed)
    return Notification(project, () if parsed is None or not parsed.number else (parsed,))


def _is_of_another(payload: Mapping[str, Any]) -> bool:
    """Return whether the text that was edited is that of another account than the sender's."""
    written = fields(payload.get("comment") or payload.get("review"))
    author = fields(written.get("user"))
    sender = fields(payload.get("sender"))
    by_author = (author.get("login"), account_id(author)) == (
        sender.get("login"),
        account_id(sender),
    )
    return bool(written) and not by_author


def project_of(payload: Mapping[str, Any]) -> str:
    """Return the repository of a payload, in lower case; else empty."""
    return str(fields(payload.get("repository")).get("full_name") or "").casefold()


def comment(project: str, pull: int, data: object, kind: EventKind) -> ForgeEvent:
    """Return the event of a comment on a pull request or issue."""
    item = fields(data)
    return _written(kind, project, pull, item, f"comment:{item.get('id')}", thread=None)


def thread_comment(project: str, pull: int, data: object) -> ForgeEvent:
    """Return the event of a comment on lines; an answer goes to the first comment of its thread."""
    item = fields(data)
    first = item.get("in_reply_to_id") or item.get("id")
    key = f"thread:{item.get('id')}"
    return _written(EventKind.REVIEW_THREAD, project, pull, item, key, thread=str(first))


def review(project: str, pull: int, data: object) -> ForgeEvent:
    """Return the event of a review."""
    item = fields(data)
    key = f"review:{item.get('id')}"
    return _written(EventKind.REVIEW, project, pull, item, key, thread=None)


def ended(project: str, pull: Mapping[str, Any]) -> ForgeEvent | None:
    """Return the event of a pull request that is merged or closed; None while it is open."""
    merged = bool(pull.get("merged") or pull.get("merged_at"))
    if not merged and pull.get("state") != "closed":
        return None
    by = fields(pull.get("merged_by"))
    return ForgeEvent(
        EventKind.MERGED if merged else EventKind.CLOSED,
        project,
        number(pull.get("number")),
        "merged" if merged else f"closed:{pull.get('closed_at') or ''}",
        author=str(by.get("login") or ""),
        commit=str(fields(pull.get("head")).get("sha") or "") or None,
        url=_text(pull.get("html_url")),
        at=moment(pull.get("merged_at") or pull.get("closed_at")),
    )


def conflict(project: str, pull: Mapping[str, Any]) -> ForgeEvent:
    """Return the event of a pull request that conflicts with its base, once for each commit."""
    head = str(fields(pull.get("head")).get("sha") or "")
    base = str(fields(pull.get("base")).get("ref") or "")
    return ForgeEvent(
        EventKind.CONFLICT,
        project,
        number(pull.get("number")),
        f"conflict:{head}",
        title=base,
        commit=head,
        url=_text(pull.get("html_url")),
    )


def labeled(project: str, payload: Mapping[str, Any]) -> tuple[ForgeEvent, ...]:
    """Return the events of an issue that was given labels."""
    issue = fields(payload.get("issue"))
    sender = fields(payload.get("sender"))
    if issue.get("pull_request"):
        return ()
    label = payload.get("label")
    labels = [label] if isinstance(label, Mapping) else objects(issue, "labels")
    return tuple(
        labeled_issue(project, issue, str(item.get("name") or ""), sender)
        for item in labels
        if number(issue.get("number"))
    )


def labeled_issue(
    project: str, issue: Mapping[str, Any], label: str, by: Mapping[str, Any]
) -> ForgeEvent:
    """Return the event of an issue with a label; `by` is the account that gave it, if known."""
    return ForgeEvent(
        EventKind.LABELED_ISSUE,
        project,
        number(issue.get("number")),
        label_key(number(issue.get("number")), label, issue.get("updated_at")),
        author=str(by.get("login") or ""),
        author_id=account_id(by),
        is_bot=by.get("type") == "Bot",
        title=plain(issue.get("title"))[:300],
        text=plain(issue.get("body"), MAX_ISSUE),
        label=label,
        url=_text(issue.get("html_url")),
        at=moment(issue.get("updated_at")),
    )


def _written(
    kind: EventKind,
    project: str,
    pull: int,
    item: Mapping[str, Any],
    key: str,
    *,
    thread: str | None,
) -> ForgeEvent:
    user = fields(item.get("user"))
    line = number(item.get("line") or item.get("original_line") or item.get("original_position"))
    verdict = str(item.get("state") or "").casefold() or None
    return ForgeEvent(
        kind,
        project,
        pull,
        f"{key}:{version(item.get('body'))}",
        author=str(user.get("login") or ""),
        author_id=account_id(user),
        is_bot=user.get("type") == "Bot",
        association=_text(item.get("author_association")),
        verdict=verdict if kind is EventKind.REVIEW else None,
        text=plain(item.get("body")),
        path=_text(item.get("path")),
        line=line or None,
        commit=_text(item.get("commit_id")),
        thread=thread,
        url=_text(item.get("html_url")),
        at=moment(item.get("submitted_at") or item.get("updated_at")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
