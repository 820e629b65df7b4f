"""A fake Gitea and Forgejo, after https://docs.gitea.com/api (swagger of version 1.22).

- repoCreatePullRequest: 409 `pull request already exists for these targets`, 422
- repoEditPullRequest returns 201
- repoMergePullRequest: 404 if closed, 405 for rules of the branch, drafts and if merged, and then
  409 `head out of date`
- repoListPullRequests has no filter by branch; a page has 50 entries (MAX_RESPONSE_ITEMS)
- issueAddLabel takes ids of labels; a title that begins with `WIP:` makes a draft
- routers/api/v1/repo: pages of pull requests and issues have a Link header; other lists have
  X-Total-Count alone, which that of issueGetCommentsAndTimeline counts for the page
- services/context, RedirectToRepo: 307 of a renamed or transferred repository, with the path alone
- `mergeable` is false for a conflict, for a draft, and while Gitea checks for conflicts
- issueGetComments, issueCreateComment and issueGetCommentsAndTimeline: 500 without such an issue
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from draftsman_testing.forges.comments import IssueComments
from draftsman_testing.forges.conversation import ended_fields
from draftsman_testing.forges.event_routes import GiteaEvents
from draftsman_testing.forges.server import FakeForge, Operation, Page, Refused, Request
from draftsman_testing.forges.world import Pull

REPO = r"/repos/([^/]+)/([^/]+)"


class FakeGitea(FakeForge):
    """Gitea with an access token."""

    kind = "gitea"
    api = "/api/v1"
    per_page = "limit"
    tags = False

    def routes(self) -> list[tuple[str, str, str, Operation]]:
        return [
            ("GET", "/user", "user", lambda _: {"login": self.world.login}),
            ("GET", REPO, "repo", self._repo),
            ("GET", REPO + "/branches/(.+)", "branch", self._branch),
            ("GET", REPO + "/labels", "labels", self._labels),
            ("GET", "/orgs/([^/]+)/labels", "org labels", self._org_labels),
            ("GET", REPO + "/pulls", "find", self._find),
            ("POST", REPO + "/pulls", "create", self._create),
            ("GET", REPO + r"/pulls/(\d+)", "get", lambda call: self._shown(self._pull(call))),
            ("PATCH", REPO + r"/pulls/(\d+)", "update", self._update),
            ("POST", REPO + r"/pulls/(\d+)/merge", "merge", self._merge),
            ("POST", REPO + r"/pulls/(\d+)/requested_reviewers", "review", self._review),
            ("POST", REPO + r"/issues/(\d+)/labels", "label", self._label),
            ("POST", REPO + r"/statuses/(\w+)", "status", self._status),
            ("GET", REPO + r"/commits/(\w+)/status", "checks", self._checks),
            *IssueComments(GiteaEvents(self)).routes(),
            *GiteaEvents(self).routes(),
        ]

    def path_of(self, project: str) -> str:
        return f"/repos/{project}"

    def moved(self, request: web.Request, rest: str) -> web.Response:
        path = f"{self.api}{self.path_of(self.world.project)}{rest}"
        return web.Response(status=307, headers={"Location": path})

    def authorize(self, request: web.Request, operation: str) -> None:
        if request.headers.get("Authorization") != f"token {self.world.token}":
            raise Refused(401, "user does not exist [uid: 0, name: ]")

    def limited(self, name: str) -> Refused:
        headers = {"Retry-After": "90" if name == "primary" else "60"}
        return Refused(429, "too many requests", headers)

    def page_headers(
        self, request: web.Request, page: Page, shown: list[Any], following: int | None
    ) -> dict[str, str]:
        is_timeline = request.path.endswith("/timeline")
        count = {"X-Total-Count": str(len(shown if is_timeline else page.entries))}
        if not request.path.endswith(("/pulls", "/issues")):
            return count
        return count | super().page_headers(request, page, shown, following)

    def _check_repo(self, call: Request) -> None:
        if "/".join(call.parts[:2]).casefold() != self.world.project:
            raise Refused(404, "The target couldn't be found.")

    def _repo(self, call: Request) -> Any:
        self._check_repo(call)
        permissions = {"push": self.world.may_push}
        names = {"full_name": self.world.project}
        return names | {"default_branch": "main", "permissions": permissions}

    def _branch(self, call: Request) -> Any:
        self._check_repo(call)
        if self.world.head(call.parts[2]) is None:
            raise Refused(404, "The target couldn't be found.")
        return {"name": call.parts[2]}

    def _labels(self, call: Request) -> Any:
        return Page([{"name": name, "id": id} for name, id in self.world.labels.items()])

    def _org_labels(self, call: Request) -> Any:
        raise Refused(404, "The target couldn't be found.")

    def _find(self, call: Request) -> Any:
        self._check_repo(call)
        state = call.query.get("state", "open")
        return Page(
            [
                self._shown(pull)
                for pull in reversed(self.world.pulls)
                if state in ("all", "open" if pull.state == "open" else "closed")
            ]
        )

    def _create(self, call: Request) -> Any:
        self._check_repo(call)
        body = call.body
        branch = body["head"]
        base = body["base"]
        title = body["title"]
        if self.world.head(branch) is None or self.world.head(base) is None:
            raise Refused(404, "The target couldn't be found.")
        if self.world.open_of(branch) is not None:
            text = "pull request already exists for these targets [id: 1, issue_id: 1]"
            raise Refused(409, text)
        if len(title) > 255:
            raise Refused(422, "[Title]: MaxSize")
        draft = title.startswith("WIP: ")
        by = self.world.login
        return self._shown(self.world.open(branch, base, title, body["body"], draft, by))

    def _update(self, call: Request) -> Any:
        pull = self._pull(call)
        pull.body = call.body.get("body", pull.body)
        pull.title = call.body.get("title", pull.title)
        pull.draft = pull.title.startswith("WIP: ")
        return web.json_response(self._shown(pull), status=201)

    def _merge(self, call: Request) -> Any:
        pull = self._pull(call)
        if call.body["Do"] not in ("merge", "rebase", "rebase-merge", "squash"):
            raise Refused(422, "[Do]: In")
        if pull.state == "closed":
            raise Refused(404, "The target couldn't be found.")
        if pull.state == "merged":
            raise Refused(405, "")
        if pull.draft:
            raise Refused(405, "Work in progress PRs cannot be merged")
        if self.world.protection is not None:
            raise Refused(405, self.world.protection)
        if call.body.get("head_commit_id") != self.world.head(pull.branch):
            raise Refused(409, "head out of date")
        texts = (call.body.get("MergeTitleField", ""), call.body.get("MergeMessageField", ""))
        pull.message = "\n\n".join(filter(None, texts))
        self.world.merge(pull)
        return web.Response()

    def _review(self, call: Request) -> Any:
        pull = self._pull(call)
        if any(name not in self.world.people for name in call.body["reviewers"]):
            raise Refused(404, "user does not exist")
        pull.reviewers = call.body["reviewers"]
        return web.json_response([], status=201)

    def _label(self, call: Request) -> Any:
        pull = self._pull(call)
        names = {id: name for name, id in self.world.labels.items()}
        pull.labels += [names[id] for id in call.body["labels"] if names[id] not in pull.labels]
        return web.json_response([])

    def _status(self, call: Request) -> Any:
        self._check_repo(call)
        if not self.world.has_commit(call.parts[2]):
            raise Refused(404, f"object does not exist [id: {call.parts[2]}]")
        if call.body["state"] not in ("pending", "success", "error", "failure", "warning"):
            raise Refused(400, "invalid state")
        self.world.statuses.append(
            {
                "name": call.body["context"],
                "state": call.body["state"],
                "description": call.body["description"],
                "commit": call.parts[2],
            }
        )
        return {"id": len(self.world.statuses)}

    def _checks(self, call: Request) -> Any:
        words = {"passed": "success", "failed": "failure"}
        commit = call.parts[2]
        jobs = [item for item in self.world.checks if item["commit"] in ("*", commit)]
        found = [
            {"context": item["name"], "status": words.get(item["state"], item["state"])}
            for item in jobs
        ]
        found += [
            {"context": item["name"], "status": item["state"]} for item in self.world.latest(commit)
        ]
        return Page(found, "statuses")

    def _pull(self, call: Request) -> Pull:
        self._check_repo(call)
        if (pull := self.world.pull(int(call.parts[2]))) is None:
            raise Refused(404, "The target couldn't be found.")
        return pull

    def _shown(self, pull: Pull) -> dict[str, Any]:
        head = pull.merged_head or self.world.head(pull.branch) or "0" * 40
        return {
            "number": pull.number,
            "html_url": f"{self.world.base}/{self.world.project}/pulls/{pull.number}",
            "state": "open" if pull.state == "open" else "closed",
            **ended_fields(pull),
            "draft": pull.draft,
            "title": pull.title,
            "body": pull.body,
            "mergeable": pull.number not in self.world.talk.conflicts and not pull.draft,
            "head": {"ref": pull.branch, "sha": head, "repo_id": 1},
            "base": {"ref": pull.base, "repo_id": 1},
        }
