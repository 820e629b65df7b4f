"""A fake GitHub Enterprise, after https://docs.github.com/en/rest (2022-11-28).

- /pulls/pulls: 422 `A pull request already exists for OWNER:BRANCH.`; merge 405 and 409
- /using-the-rest-api/rate-limits-for-the-rest-api: primary and secondary limits are 403 or 429
- /commits/statuses: 422 for an unknown commit; a description has 140 characters
- /using-the-rest-api/best-practices-for-using-the-rest-api, "Follow redirects": 301 to
  `/repositories/ID` for GET, 307 for other methods, of a renamed or transferred repository
- /using-the-rest-api/troubleshooting-the-rest-api: 403 and 451 of a blocked repository
- /apps: an assertion is RS256, and valid for ten minutes at most
"""

from __future__ import annotations

import base64
import json
import re
import time
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from draftsman_testing.forges.comments import IssueComments
from draftsman_testing.forges.conversation import ended_fields
from draftsman_testing.forges.event_routes import GitHubEvents
from draftsman_testing.forges.server import FakeForge, Operation, Page, Refused, Request
from draftsman_testing.forges.world import Pull

REPO = r"/repos/([^/]+)/([^/]+)"


class FakeGitHub(FakeForge):
    """GitHub with a fine-grained access token."""

    kind = "github"
    api = "/api/v3"

    def routes(self) -> list[tuple[str, str, str, Operation]]:
        return [
            ("GET", "/user", "user", self._user),
            ("GET", REPO, "repo", self._repo),
            ("GET", REPO + r"/branches/(.+)", "branch", self._branch),
            ("GET", REPO + r"/pulls", "find", self._find),
            ("POST", REPO + r"/pulls", "create", self._create),
            ("GET", REPO + r"/pulls/(\d+)", "get", lambda call: self._shown(self._pull(call))),
            ("PATCH", REPO + r"/pulls/(\d+)", "update", self._update),
            ("POST", REPO + r"/issues/(\d+)/labels", "label", self._label),
            ("POST", REPO + r"/pulls/(\d+)/requested_reviewers", "review", self._review),
            ("PUT", REPO + r"/pulls/(\d+)/merge", "merge", self._merge),
            ("POST", REPO + r"/statuses/(\w+)", "status", self._status),
            ("GET", REPO + r"/commits/(\w+)/check-runs", "checks", self._check_runs),
            ("GET", REPO + r"/commits/(\w+)/status", "statuses", self._statuses),
            *IssueComments(GitHubEvents(self)).routes(),
            *GitHubEvents(self).routes(),
            ("GET", "/app", "app", lambda _: {"slug": "draftsman-app"}),
            ("GET", REPO + "/installation", "installation", self._installation),
            ("POST", r"/app/installations/(\d+)/access_tokens", "token", self._access_token),
        ]

    def path_of(self, project: str) -> str:
        return f"/repos/{project}"

    def moved(self, request: web.Request, rest: str) -> web.Response:
        url = self.url_by_id(rest)
        status = 301 if request.method == "GET" else 307
        text = "Moved Permanently" if status == 301 else "Temporary Redirect"
        body = {"message": text, "url": url}
        return web.json_response(body, status=status, headers={"Location": url})

    def graphql(self, call: Request) -> Any:
        """Show the threads of a pull request or its id, or resolve a thread or change a draft."""
        names = call.body["variables"]
        talk = self.world.talk
        query = call.body["query"]
        if "isDraft" in query:
            return self._draft(query, names)
        if "resolveReviewThread" in call.body["query"]:
            for item in talk.comments:
                if f"T{item.id}" == names["id"]:
                    item.resolved = True
                    return {"data": {"resolveReviewThread": {"thread": {"isResolved": True}}}}
            return {"data": None, "errors": [{"message": "Could not resolve to a node"}]}
        nodes = [
            {
                "id": f"T{item.id}",
                "isResolved": item.resolved,
                "comments": {"nodes": [{"databaseId": item.id}]},
            }
            for item in talk.comments
            if item.path and item.replies_to is None and item.number == names["number"]
        ]
        threads = {"pullRequest": {"reviewThreads": {"nodes": nodes}}}
        return {"data": {"repository": threads}}

    def _draft(self, query: str, names: dict[str, Any]) -> Any:
        """Show the id of a pull request, or change whether it is a draft."""
        if "mutation" not in query:
            pull = self.world.pull(names["number"])
            shown = pull and {"id": f"PR{pull.number}", "isDraft": pull.draft}
            return {"data": {"repository": {"pullRequest": shown}}}
        pull = self.world.pull(int(names["id"].removeprefix("PR")))
        name = re.search(r"convertPullRequestToDraft|markPullRequestReadyForReview", query)
        if pull is None or name is None or pull.state != "open":
            return {"data": None, "errors": [{"message": "Could not resolve to a node"}]}
        to_draft = name[0] == "convertPullRequestToDraft"
        if to_draft and not self.world.has_drafts:
            text = "Draft pull requests are not supported in this repository."
            return {"data": None, "errors": [{"message": text}]}
        pull.draft = to_draft
        return {"data": {name[0]: {"pullRequest": {"isDraft": pull.draft}}}}

    def authorize(self, request: web.Request, operation: str) -> None:
        if not request.headers.get("User-Agent"):
            raise Refused(403, "Request forbidden by administrative rules.")
        if not self.accepts(request.headers.get("Authorization", "").removeprefix("Bearer ")):
            raise Refused(401, "Bad credentials")

    def accepts(self, token: str) -> bool:
        """Return whether a token of the API is valid."""
        return token == self.world.token

    def git_token(self, user: str, password: str) -> bool:
        return self.accepts(password) and user == "x-access-token"

    def limited(self, name: str) -> Refused:
        if name == "primary":
            reset = str(int(time.time()) + 90)
            headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}
            return Refused(403, "API rate limit exceeded for user ID 1.", headers)
        text = "You have exceeded a secondary rate limit. Please wait a few minutes."
        return Refused(403, text)

    def _check_repo(self, call: Request) -> None:
        if "/".join(call.parts[:2]).casefold() != self.world.project:
            raise Refused(404, "Not Found")

    def _user(self, call: Request) -> Any:
        headers = {} if self.world.scopes is None else {"X-OAuth-Scopes": self.world.scopes}
        return web.json_response({"login": self.world.login}, headers=headers)

    def _repo(self, call: Request) -> Any:
        self._check_repo(call)
        permissions = {"push": self.world.may_push}
        names = {"id": self.world.id, "full_name": self.world.project}
        return names | {"default_branch": "main", "permissions": permissions}

    def _branch(self, call: Request) -> Any:
        self._check_repo(call)
        if self.world.head(call.parts[2].replace("%2F", "/")) is None:
            raise Refused(404, "Branch not found")
        return {"name": call.parts[2]}

    def _find(self, call: Request) -> Any:
        self._check_repo(call)
        owner, _, branch = call.query.get("head", "").partition(":")
        state = call.query.get("state", "open")
        own = owner in ("", self.world.project.split("/")[0])
        return Page(
            [
                self._shown(pull, brief=True)
                for pull in reversed(self.world.pulls)
                if own
                and branch in ("", pull.branch)
                and state in ("all", "open" if pull.state == "open" else "closed")
            ]
        )

    def _create(self, call: Request) -> Any:
        self._check_repo(call)
        body = call.body
        owner = self.world.project.split("/")[0]
        branch = body["head"]
        base = body["base"]
        text = body.get("body") or ""
        if self.world.head(branch) is None:
            raise _invalid("field", "head")
        if (target := self.world.head(base)) is None:
            raise _invalid("field", "base")
        if self.world.open_of(branch) is not None:
            raise _invalid("message", f"A pull request already exists for {owner}:{branch}.")
        if target == self.world.head(branch):
            raise _invalid("message", f"No commits between {base} and {branch}")
        if body.get("draft") and not self.world.has_drafts:
            raise Refused(422, "Draft pull requests are not supported in this repository.")
        if len(text) > 65_536 or len(body["title"]) > 256:
            raise _invalid("message", "body is too long (maximum is 65536 characters)")
        draft = bool(body.get("draft"))
        return self._shown(
            self.world.open(branch, base, body["title"], text, draft, self.world.login)
        )

    def _update(self, call: Request) -> Any:
        pull = self._pull(call)
        pull.body = call.body.get("body", pull.body)
        pull.title = call.body.get("title", pull.title)
        return self._shown(pull)

    def _label(self, call: Request) -> Any:
        pull = self._pull(call)
        pull.labels += [name for name in call.body["labels"] if name not in pull.labels]
        return web.json_response([{"name": name} for name in pull.labels])

    def _review(self, call: Request) -> Any:
        pull = self._pull(call)
        if unknown := [name for name in call.body["reviewers"] if name not in self.world.people]:
            text = f"Reviews may only be requested from collaborators. {unknown[0]} is none."
            raise Refused(422, text)
        pull.reviewers = [*call.body["reviewers"], *call.body["team_reviewers"]]
        return self._shown(pull)

    def _merge(self, call: Request) -> Any:
        pull = self._pull(call)
        if pull.state != "open" or pull.draft:
            raise Refused(405, "Pull Request is not mergeable")
        if call.body.get("sha") != self.world.head(pull.branch):
            raise Refused(409, "Head branch was modified. Review and try the merge again.")
        if self.world.protection is not None:
            raise Refused(405, self.world.protection)
        texts = (call.body.get("commit_title", ""), call.body.get("commit_message", ""))
        pull.message = "\n\n".join(filter(None, texts))
        self.world.merge(pull)
        return {"merged": True, "sha": pull.merged_head}

    def _status(self, call: Request) -> Any:
        self._check_repo(call)
        if not self.world.has_commit(call.parts[2]):
            raise Refused(422, f"No commit found for SHA: {call.parts[2]}")
        if len(call.body.get("description", "")) > 140:
            raise _invalid("message", "description is too long (maximum is 140 characters)")
        if call.body["state"] not in ("error", "failure", "pending", "success"):
            raise _invalid("field", "state")
        self.world.statuses.append(
            {
                "name": call.body["context"],
                "state": call.body["state"],
                "description": call.body["description"],
                "commit": call.parts[2],
            }
        )
        return {"id": len(self.world.statuses)}

    def _check_runs(self, call: Request) -> Any:
        words = {"passed": "success", "failed": "failure", "canceled": "cancelled"}
        numbered = list(enumerate(self.world.checks, 1))
        runs = [(id, item) for id, item in numbered if item["commit"] in ("*", call.parts[2])]
        return Page(
            [
                {
                    "id": id,
                    "app": {"slug": "github-actions"},
                    "output": {"title": None, "summary": None, "text": None},
                    "name": item["name"],
                    "status": "completed" if item["state"] in words else "in_progress",
                    "conclusion": words.get(item["state"]),
                }
                for id, item in runs
            ],
            "check_runs",
        )

    def _statuses(self, call: Request) -> Any:
        if self.world.head("main") is not None and call.parts[2] == "main":
            return Page([], "statuses")
        found = self.world.latest(call.parts[2])
        return Page(
            [{"context": item["name"], "state": item["state"]} for item in found], "statuses"
        )

    def _pull(self, call: Request) -> Pull:
        self._check_repo(call)
        if (pull := self.world.pull(int(call.parts[2]))) is None:
            raise Refused(404, "Not Found")
        return pull

    def _shown(self, pull: Pull, *, brief: bool = False) -> dict[str, Any]:
        head = pull.merged_head or self.world.head(pull.branch) or "0" * 40
        shown = {
            "number": pull.number,
            "html_url": f"{self.world.base}/{self.world.project}/pull/{pull.number}",
            "state": "open" if pull.state == "open" else "closed",
            **ended_fields(pull),
            "draft": pull.draft,
            "title": pull.title,
            "body": pull.body,
            "head": {"ref": pull.branch, "sha": head},
            "base": {"ref": pull.base},
        }
        if not brief:
            blocked = self.world.protection is not None
            shown["mergeable_state"] = "blocked" if blocked else "clean"
            if pull.number in self.world.talk.conflicts:
                shown["mergeable_state"] = "dirty"
        return shown

    def _installation(self, call: Request) -> Any:
        raise Refused(401, "A JSON web token could not be decoded")

    def _access_token(self, call: Request) -> Any:
        raise Refused(401, "A JSON web token could not be decoded")


class FakeGitHubApp(FakeGitHub):
    """GitHub with an app, whose installation tokens are valid for one repository."""

    def __init__(self, folder: Any) -> None:
        super().__init__(folder)
        self._key = _KEY
        self.tokens: list[str] = []
        """Installation tokens so far."""
        self.permissions = {
            "contents": "write",
            "pull_requests": "write",
            "statuses": "write",
            "checks": "read",
        }

    def settings(self) -> dict[str, Any]:
        key = {"env": "FORGE_KEY"}
        return {"kind": "github", "url": self.world.base, "app_id": 77, "private_key": key}

    @property
    def private_key(self) -> str:
        """The key in PEM form, as GitHub gives it."""
        form = (Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        return self._key.private_bytes(*form).decode()

    def authorize(self, request: web.Request, operation: str) -> None:
        if operation not in ("app", "installation", "token"):
            super().authorize(request, operation)
            return
        try:
            self._check_assertion(request.headers["Authorization"].removeprefix("Bearer "))
        except (ValueError, KeyError, InvalidSignature):
            raise Refused(401, "A JSON web token could not be decoded") from None

    def accepts(self, token: str) -> bool:
        return token in self.tokens

    def _check_assertion(self, token: str) -> None:
        head, claims, signature = token.split(".")
        self._key.public_key().verify(
            _decoded(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), SHA256()
        )
        fields = json.loads(_decoded(claims))
        now = time.time()
        if fields["iss"] != "77" or not now < fields["exp"] <= now + 600 or fields["iat"] > now:
            raise ValueError("the assertion is not valid now")

    def _installation(self, call: Request) -> Any:
        self._check_repo(call)
        return {"id": 5, "permissions": self.permissions}

    def _access_token(self, call: Request) -> Any:
        limits = (
            {"repositories": [self.world.project.rpartition("/")[2]]},
            {"repository_ids": [self.world.id]},
            {"permissions": {"metadata": "read"}},
        )
        if call.parts[0] != "5" or call.body not in limits:
            raise Refused(422, "There is at least one repository that does not exist.")
        self.tokens.append(f"ghs_{len(self.tokens) + 1:036}")
        expiry = datetime.fromtimestamp(self.world.now() + 3600, UTC)
        return {"token": self.tokens[-1], "expires_at": expiry.strftime("%Y-%m-%dT%H:%M:%SZ")}


_KEY = rsa.generate_private_key(public_exponent=65537, key_size=1024)


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _invalid(key: str, text: str) -> Refused:
    error = {"resource": "PullRequest", "code": "invalid" if key == "field" else "custom"}
    return Refused(422, {"message": "Validation Failed", "errors": [error | {key: text}]})
