"""Comments, reviews, check logs and issues of a fake forge, and its webhooks."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from aiohttp import ClientSession

if TYPE_CHECKING:
    from draftsman_testing.forges.world import ForgeWorld, Pull

SECRET: Final = "secret-of-the-webhook"
AT: Final = "2026-01-02T03:04:05Z"


@dataclass
class Comment:
    """A comment on a pull request; on lines with a path, part of a review with its id."""

    id: int
    number: int
    author: str
    body: str
    path: str | None = None
    line: int | None = None
    review: int | None = None
    replies_to: int | None = None
    resolved: bool = False
    edited: str = AT


@dataclass
class Review:
    """A review: `approved`, `changes_requested` or `commented`."""

    id: int
    number: int
    author: str
    body: str
    state: str


@dataclass
class Conversation:
    """Comments and reviews of people, logs of checks, issues, conflicts and webhooks."""

    comments: list[Comment] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    logs: dict[int, str] = field(default_factory=dict)
    issues: list[dict[str, Any]] = field(default_factory=list)
    conflicts: set[int] = field(default_factory=set)
    hooks: list[str] = field(default_factory=list)
    hooks_fail: bool = False
    """Whether the webhooks are disabled."""
    _last: int = 100

    def next_id(self) -> int:
        """Return an unused id."""
        self._last += 1
        return self._last

    def comment(self, number: int, author: str, body: str, **more: Any) -> Comment:
        """Write a comment."""
        self.comments.append(Comment(self.next_id(), number, author, body, **more))
        return self.comments[-1]

    def review(
        self, number: int, author: str, state: str, body: str = "", **lines: str
    ) -> tuple[Review, list[Comment]]:
        """Submit a review with comments on the first lines of files: `a_txt="…"`."""
        review = Review(self.next_id(), number, author, body, state)
        self.reviews.append(review)
        return review, [
            self.comment(
                number, author, text, path=name.replace("_", "."), line=1, review=review.id
            )
            for name, text in lines.items()
        ]


class Payloads:
    """The JSON of GitHub and Gitea, the same in the API and in webhooks."""

    def __init__(self, world: ForgeWorld) -> None:
        self.world = world

    def user(self, name: str) -> dict[str, Any]:
        """Return an account."""
        kind = "Bot" if name.endswith("[bot]") else "User"
        return {"id": self.world.account_id(name), "login": name, "type": kind}

    def comment(self, item: Comment) -> dict[str, Any]:
        """Return a comment."""
        shown = {
            "id": item.id,
            "user": self.user(item.author),
            "body": item.body,
            "author_association": "MEMBER" if item.author in self.world.people else "NONE",
            "created_at": AT,
            "updated_at": item.edited,
            "html_url": f"{self.world.base}/{self.world.project}/pull/{item.number}#c{item.id}",
        }
        if item.path is not None:
            shown |= {"path": item.path, "line": item.line, "pull_request_review_id": item.review}
            shown |= {"in_reply_to_id": item.replies_to} if item.replies_to else {}
        return shown

    def review(self, item: Review, upper: bool = True) -> dict[str, Any]:
        """Return a review; its state is in lower case in webhooks of GitHub."""
        return {
            "id": item.id,
            "user": self.user(item.author),
            "body": item.body,
            "state": item.state.upper() if upper else item.state,
            "author_association": "MEMBER",
            "submitted_at": AT,
            "html_url": f"{self.world.base}/{self.world.project}/pull/{item.number}#r{item.id}",
        }

    @property
    def repository(self) -> dict[str, Any]:
        """Return the repository, as webhooks show it."""
        return {"full_name": "Acme/pay"}


class GiteaPayloads(Payloads):
    """The JSON of Gitea: structs `User`, `Comment`, `PullReview` and `PullReviewComment`."""

    def user(self, name: str) -> dict[str, Any]:
        return {"id": self.world.account_id(name), "login": name}

    def comment(self, item: Comment) -> dict[str, Any]:
        shown = super().comment(item)
        for name in ("author_association", "line", "in_reply_to_id"):
            shown.pop(name, None)
        return shown | ({} if item.path is None else {"position": item.line})

    def review(self, item: Review, upper: bool = True) -> dict[str, Any]:
        shown = super().review(item, upper)
        del shown["author_association"]
        return shown


async def deliver(url: str, body: bytes | io.BytesIO, headers: dict[str, str]) -> tuple[int, str]:
    """Send a webhook; return status and text of the response."""
    async with ClientSession() as session, session.post(url, data=body, headers=headers) as reply:
        return reply.status, await reply.text()


def github_webhook(
    event: str, payload: dict[str, Any], secret: str = SECRET
) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of a webhook of GitHub."""
    body = json.dumps(payload).encode()
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return body, {"X-GitHub-Event": event, "X-Hub-Signature-256": f"sha256={digest}"}


def gitea_webhook(
    event: str, payload: dict[str, Any], secret: str = SECRET
) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of a webhook of Gitea."""
    body = json.dumps(payload).encode()
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return body, {"X-Gitea-Event": event, "X-Gitea-Signature": digest}


def gitlab_webhook(
    event: str, payload: dict[str, Any], secret: str = SECRET
) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of a webhook of GitLab."""
    return json.dumps(payload).encode(), {"X-Gitlab-Event": event, "X-Gitlab-Token": secret}


def ended_fields(pull: Pull) -> dict[str, Any]:
    """Return the fields of a pull request that show how it ended."""
    merged = pull.state == "merged"
    return {
        "merged": merged,
        "merged_at": AT if merged else None,
        "closed_at": None if pull.state == "open" else pull.closed_at,
    }
