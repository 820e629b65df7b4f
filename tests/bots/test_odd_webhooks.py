"""Any value in any field of a webhook of a forge or a pager: a 200, or a clear refusal."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import httpx
import pytest
from starlette.applications import Starlette

from draftsman.forges.webhooks import Webhooks
from draftsman.runtime import Runtime
from draftsman.settings import settings_model
from draftsman_bots.forge_kinds import gitea_events, github_events, gitlab_events
from draftsman_bots.forges import service
from draftsman_bots.forges.receiver import ForgeReceiver
from draftsman_bots.pagers.service import PagerHealth, PagerReceiver
from draftsman_testing.forges import conversation
from tests.support.odd_json import Json, oddities

SECRET: Final = "s" * 32
FINE: Final = {200, 400}
"""400: it is no object, or has too many levels."""
AT: Final = "2026-11-27T10:00:01Z"
USER: Final = {"id": 5, "login": "anna", "type": "User", "username": "anna"}
NOTE: Final = {
    "id": 9, "user": USER, "body": "@draftsman fix it", "created_at": AT, "updated_at": AT,
    "html_url": "https://example.org/9", "path": "a.txt", "line": 1, "in_reply_to_id": 8,
    "pull_request_review_id": 7, "author_association": "MEMBER",
}  # fmt: skip
ISSUE: Final = {
    "number": 7, "title": "Refunds", "body": "Twice", "user": USER, "labels": [{"name": "fix"}],
    "html_url": "https://example.org/7", "updated_at": AT,
}  # fmt: skip
PULL: Final = {
    "number": 8, "merged": True, "merged_at": AT, "closed_at": AT, "merge_commit_sha": "a" * 40,
    "head": {"ref": "draftsman/D-1", "sha": "b" * 40}, "base": {"ref": "main"},
    "html_url": "https://example.org/8", "user": USER,
}  # fmt: skip
REVIEW: Final = {"id": 7, "user": USER, "body": "No", "state": "changes_requested",
                 "submitted_at": AT, "html_url": "https://example.org/r"}  # fmt: skip
ABOUT: Final = {"repository": {"full_name": "Acme/pay"}, "sender": USER}
GITHUB: Final[dict[str, Json]] = {
    "issue_comment": ABOUT | {"action": "created", "issue": ISSUE, "comment": NOTE},
    "issues": ABOUT | {"action": "labeled", "issue": ISSUE, "label": {"id": 1, "name": "fix"}},
    "pull_request": ABOUT | {"action": "closed", "pull_request": PULL},
    "pull_request_review": ABOUT | {"action": "submitted", "pull_request": PULL, "review": REVIEW},
    "pull_request_review_comment": ABOUT
    | {"action": "created", "pull_request": PULL, "comment": NOTE},
    "check_run": ABOUT | {"action": "completed", "check_run": {"name": "ci", "id": 1}},
}
GITLAB_ABOUT: Final = {"project": {"path_with_namespace": "acme/pay"}, "user": USER}
GITLAB: Final[dict[str, Json]] = {
    "Note Hook": GITLAB_ABOUT | {
        "object_attributes": {
            "id": 9, "note": "@draftsman fix it", "noteable_type": "MergeRequest", "url": "u",
            "discussion_id": "d", "updated_at": AT, "action": "create", "author_id": 5,
            "position": {"new_path": "a.txt", "new_line": 1, "head_sha": "b" * 40},
        },
        "merge_request": {"iid": 8, "state": "opened"},
        "issue": {"iid": 7, "title": "Refunds", "labels": [{"id": 1, "title": "fix"}]},
    },
    "Merge Request Hook": GITLAB_ABOUT | {
        "object_attributes": {
            "iid": 8, "action": "merge", "state": "merged", "updated_at": AT, "url": "u",
            "last_commit": {"id": "b" * 40}, "merged_at": AT,
        }
    },
    "Issue Hook": GITLAB_ABOUT | {
        "object_attributes": {"iid": 7, "action": "update", "title": "Refunds", "updated_at": AT},
        "labels": [{"id": 1, "title": "fix"}],
        "changes": {"labels": {"previous": [], "current": [{"id": 1, "title": "fix"}]}},
    },
}  # fmt: skip
PAGERS: Final[dict[str, Json]] = {
    "pagerduty": {
        "event": {
            "id": "5ac64822-4adc-4fda-ade0-1", "event_type": "incident.acknowledged",
            "occurred_at": AT,
            "agent": {"id": "PLH1HKV", "summary": "Ben", "type": "user_reference"},
            "data": {"id": "PGR0VU2", "incident_key": "draftsman:D-1/1", "number": 2},
        }
    },
    "grafana_oncall": {
        "event": {"type": "acknowledge", "time": AT},
        "user": {"id": "U1", "email": "ben@example.org", "username": "Ben"},
        "alert_group_id": "I6HNZGUFG4K11",
        "alert_payload": {"alert_uid": "draftsman:D-1/1", "state": "alerting"},
    },
}  # fmt: skip
FORGES: Final = {
    "github": (github_events.parse, conversation.github_webhook, GITHUB),
    "gitea": (gitea_events.parse, conversation.gitea_webhook, GITHUB),
    "gitlab": (gitlab_events.parse, conversation.gitlab_webhook, GITLAB),
}
"""The parser of the webhooks of each kind, their signature, and the documents."""
Post = Callable[[str, bytes, dict[str, str]], Awaitable[int]]


def poster(app: Starlette) -> Post:
    """Return a function that sends a webhook to an application, and returns the status."""
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://bot")

    async def post(path: str, body: bytes, headers: dict[str, str]) -> int:
        return (await client.post(path, content=body, headers=headers)).status_code

    return post


@pytest.fixture
def receivers(rt: Runtime) -> tuple[Post, Post]:
    """Provide the endpoints of forges and of pagers."""
    secret = {"env": "UNSET"}
    tables = {
        "forges": {
            kind: {
                "kind": kind, "url": f"https://{kind}.example.org", "token": secret,
                "events": "webhook", "listen": "127.0.0.1:0", "webhook_secret": secret,
            }
            for kind in FORGES
        },
        "pagers": {kind: {"format": kind, "secret": secret} for kind in PAGERS},
    }  # fmt: skip
    read: Any = settings_model().model_validate(tables)
    settings = rt.settings.model_copy(update={"forges": read.forges, "pagers": read.pagers})
    rt = replace(rt, settings=settings)
    webhooks = {name: Webhooks.of(forge, SECRET, {}) for name, forge in read.forges.items()}
    forges = service.application(ForgeReceiver(rt), webhooks)
    pagers = PagerReceiver(rt, PagerHealth(), dict.fromkeys(PAGERS, SECRET)).application()
    return poster(forges), poster(pagers)


def forge_webhooks(few: int | None) -> Iterator[tuple[str, str, bytes, dict[str, str]]]:
    """Yield name, path, body and headers of each webhook of each kind of forge."""
    for kind, (_, signed, documents) in FORGES.items():
        for name, document in oddities(documents, few):
            yield name, f"/forges/{kind}", *signed(name.partition(":")[0], document, SECRET)


async def refused_by_forges(post: Post, few: int | None) -> list[str]:
    """Return the webhooks of forges whose response is neither a 200 nor a refusal."""
    return [
        f"{status} {path} {name}"
        for name, path, body, headers in forge_webhooks(few)
        if (status := await post(path, body, headers)) not in FINE
    ]


async def refused_by_pagers(post: Post, few: int | None) -> list[str]:
    """Return the webhooks of pagers whose response is neither a 200 nor a refusal."""
    problems = []
    for name, document in oddities(PAGERS, few):
        kind = name.partition(":")[0]
        body = json.dumps(document).encode()
        headers = {"authorization": SECRET}
        if kind == "pagerduty":
            digest = conversation.github_webhook("", document, SECRET)[1]["X-Hub-Signature-256"]
            headers = {"x-pagerduty-signature": digest.replace("sha256=", "v1=")}
        if (status := await post(f"/pagers/{kind}", body, headers)) not in FINE:
            problems.append(f"{status} {name}")
    return problems


def test_the_parsers_of_forges_fail_for_no_value_in_any_field() -> None:
    for kind, (parse, _, documents) in FORGES.items():
        for name, document in oddities(documents, None):
            headers = {f"x-{kind}-event": name.partition(":")[0]}
            assert parse(headers, document).project is not None, name


async def test_any_value_in_any_field_of_a_forge_is_no_failure(
    receivers: tuple[Post, Post],
) -> None:
    assert await refused_by_forges(receivers[0], few=1) == []


async def test_a_forge_does_not_repeat_a_webhook_that_the_database_refuses(
    receivers: tuple[Post, Post],
) -> None:
    document = GITHUB["issue_comment"] | {"comment": NOTE | {"id": "x" * 4000}}
    body, headers = conversation.github_webhook("issue_comment", document, SECRET)
    assert await receivers[0]("/forges/github", body, headers) == 400


async def test_any_value_in_any_field_of_a_pager_is_no_failure(
    receivers: tuple[Post, Post],
) -> None:
    assert await refused_by_pagers(receivers[1], few=None) == []
