"""Operations of fake forges on comments, reviews, logs, issues and webhooks.

- GitHub: /rest/issues/comments, /rest/pulls/reviews, /rest/pulls/comments, /rest/checks/runs,
  /rest/actions/workflow-jobs (a log is a redirect to another host, which gets no token)
- GitLab: api/discussions, api/notes, api/jobs (`trace`), api/project_webhooks
- Gitea: issueGetComments and repoGetPullReviewComments, which have no pages,
  repoListPullReviews, issueListIssues (which discards the name of an unknown label), repoListHooks
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from aiohttp import web

from draftsman_testing.forges.conversation import AT, Comment, GiteaPayloads, Payloads
from draftsman_testing.forges.server import Operation, Page, Refused, Request

if TYPE_CHECKING:
    from draftsman_testing.forges.server import FakeForge

Routes = list[tuple[str, str, str, Operation]]


class GitHubEvents:
    """The operations of GitHub and, where they are the same, of Gitea."""

    repo = r"/repos/([^/]+)/([^/]+)"
    payloads: ClassVar[type[Payloads]] = Payloads
    is_gitea: ClassVar[bool] = False

    def __init__(self, fake: FakeForge) -> None:
        self.fake = fake
        self.world = fake.world
        self.talk = fake.world.talk
        self.show = self.payloads(fake.world)

    def routes(self) -> Routes:
        """Return method, pattern, name and function of each operation."""
        repo = self.repo
        return [
            ("GET", repo + r"/issues/(\d+)/comments", "comments", self.comments),
            ("POST", repo + r"/issues/(\d+)/comments", "comment", self.write),
            ("GET", repo + r"/pulls/(\d+)/reviews", "reviews", self.reviews),
            ("GET", repo + r"/pulls/(\d+)/comments", "threads", self.threads),
            ("POST", repo + r"/pulls/(\d+)/comments/(\d+)/replies", "reply", self.reply),
            ("GET", repo + r"/actions/jobs/(\d+)/logs", "log", self.log),
            ("GET", repo + r"/issues", "issues", self.issues),
            ("GET", repo + r"/hooks", "hooks", self.hooks),
            ("DELETE", repo + r"/git/refs/heads/(.+)", "delete branch", self.delete_branch),
        ]

    def comments(self, call: Request) -> Any:
        """Return the comments that are not on lines."""
        number = self._number(call)
        found = [item for item in self.talk.comments if item.number == number and not item.path]
        return Page([self.show.comment(item) for item in found], whole=self.is_gitea)

    def threads(self, call: Request) -> Any:
        """Return the comments on lines."""
        number = self._number(call)
        found = [item for item in self.talk.comments if item.number == number and item.path]
        return Page([self.show.comment(item) for item in found])

    def reviews(self, call: Request) -> Any:
        """Return the reviews."""
        number = self._number(call)
        return Page([self.show.review(item) for item in self.talk.reviews if item.number == number])

    def write(self, call: Request) -> Any:
        """Write a comment."""
        return self.show.comment(self._write(call, self._number(call)))

    def reply(self, call: Request) -> Any:
        """Reply to the first comment of a thread; a reply has no replies."""
        number = self._number(call)
        to = int(call.parts[3])
        first = next((item for item in self.talk.comments if item.id == to), None)
        if first is None or first.path is None or first.number != number:
            raise Refused(404, "Not Found")
        if first.replies_to is not None:
            raise Refused(422, "Validation Failed")
        more = {"path": first.path, "line": first.line, "replies_to": to}
        return self.show.comment(self._write(call, number, **more))

    def log(self, call: Request) -> Any:
        """Return the address of a log, at another host."""
        if int(call.parts[2]) not in self.talk.logs:
            raise Refused(404, "Not Found")
        host = self.world.base.replace("127.0.0.1", "localhost")
        raise Refused(302, "", {"Location": f"{host}/logs/{call.parts[2]}"})

    def issues(self, call: Request) -> Any:
        """Return the open issues with a label."""
        label = call.query.get("labels")
        return Page(
            [item for item in self.talk.issues if label in [it["name"] for it in item["labels"]]]
        )

    def hooks(self, call: Request) -> Any:
        """Return the webhooks."""
        works = not self.talk.hooks_fail
        return Page([{"active": works, "config": {"url": url}} for url in self.talk.hooks])

    def delete_branch(self, call: Request) -> Any:
        """Delete a branch."""
        if not self.world.delete(call.parts[2]):
            raise Refused(422, "Reference does not exist")
        return web.Response(status=204)

    def _write(self, call: Request, number: int, **more: Any) -> Comment:
        if not str(call.body.get("body") or "").strip():
            raise Refused(422, "Validation Failed")
        return self.talk.comment(number, self.world.login, call.body["body"], **more)

    def _number(self, call: Request) -> int:
        number = int(call.parts[2])
        if "/".join(call.parts[:2]).casefold() != self.world.project or (
            self.world.pull(number) is None
        ):
            raise Refused(404, "Not Found")
        return number


class GiteaEvents(GitHubEvents):
    """The operations of Gitea: comments on lines are those of a review, and have no replies."""

    payloads = GiteaPayloads
    is_gitea = True

    def routes(self) -> Routes:
        repo = self.repo
        return [
            ("GET", repo + r"/issues/(\d+)/comments", "comments", self.comments),
            ("POST", repo + r"/issues/(\d+)/comments", "comment", self.write),
            ("GET", repo + r"/pulls/(\d+)/reviews", "reviews", self.gitea_reviews),
            ("GET", repo + r"/pulls/(\d+)/reviews/(\d+)/comments", "threads", self.of_review),
            ("GET", repo + r"/issues", "issues", self.issues),
            ("GET", repo + r"/hooks", "hooks", self.hooks),
            ("DELETE", repo + r"/branches/(.+)", "delete branch", self.delete_branch),
        ]

    def gitea_reviews(self, call: Request) -> Any:
        """Return the reviews, with the states of Gitea."""
        words = {"approved": "APPROVED", "changes_requested": "REQUEST_CHANGES"}
        number = self._number(call)
        asked = self.world.pulls[number - 1].reviewers
        requests = [
            {"id": 900 + id, "user": self.show.user(name), "state": "REQUEST_REVIEW", "body": ""}
            for id, name in enumerate(asked)
        ]
        return Page(
            requests
            + [
                self.show.review(item)
                | {
                    "state": words.get(item.state, "COMMENT"),
                    "comments_count": sum(c.review == item.id for c in self.talk.comments),
                }
                for item in self.talk.reviews
                if item.number == number
            ]
        )

    def of_review(self, call: Request) -> Any:
        """Return the comments on lines of a review."""
        self._number(call)
        found = [item for item in self.talk.comments if item.review == int(call.parts[3])]
        return Page([self.show.comment(item) for item in found], whole=True)

    def issues(self, call: Request) -> Any:
        if call.query.get("labels") not in self.world.labels:
            return Page(list(self.talk.issues))
        return super().issues(call)


class GitLabEvents:
    """The operations of GitLab."""

    project = r"/projects/([^/]+)"

    def __init__(self, fake: FakeForge) -> None:
        self.world = fake.world
        self.talk = fake.world.talk

    def routes(self) -> Routes:
        """Return method, pattern, name and function of each operation."""
        pull = self.project + r"/merge_requests/(\d+)"
        return [
            ("GET", pull + "/discussions", "comments", self.discussions),
            ("POST", pull + "/notes", "comment", self.write),
            ("POST", pull + r"/discussions/([\w-]+)/notes", "reply", self.reply),
            ("PUT", pull + r"/discussions/([\w-]+)", "resolve", self.resolve),
            ("GET", self.project + r"/jobs/(\d+)/trace", "log", self.trace),
            ("GET", self.project + "/issues", "issues", self.issues),
            ("GET", self.project + "/hooks", "hooks", self.hooks),
            ("DELETE", self.project + "/repository/branches/(.+)", "delete branch", self.delete),
        ]

    def note(self, item: Comment) -> dict[str, Any]:
        """Return a note."""
        shown = {
            "id": item.id,
            "body": item.body,
            "author": {"id": self.world.account_id(item.author), "username": item.author},
            "system": False,
            "resolvable": item.path is not None,
            "resolved": item.resolved,
            "created_at": AT,
            "updated_at": item.edited,
        }
        if item.path is not None:
            shown["position"] = {"new_path": item.path, "new_line": item.line, "head_sha": "0" * 40}
        return shown

    def _changed(self, since: datetime) -> Page:
        """Return the issues with a note since a time."""
        numbers = {
            int(note.place[1:])
            for note in self.world.notes
            if note.at >= since and note.place in self.world.issues
        }
        return Page([{"iid": number} for number in sorted(numbers)])

    def discussions(self, call: Request) -> Any:
        """Return the threads of a merge request."""
        number = self._number(call)
        firsts = []
        for item in self.talk.comments:
            if item.number == number and item.replies_to is None:
                replies = [c for c in self.talk.comments if c.replies_to == item.id]
                notes = [self.note(note) for note in (item, *replies)]
                firsts.append({"id": f"{item.id:040x}", "notes": notes})
        return Page(firsts)

    def write(self, call: Request) -> Any:
        """Write a comment."""
        return self.note(self.talk.comment(self._number(call), self.world.login, call.body["body"]))

    def reply(self, call: Request) -> Any:
        """Reply in a thread."""
        first = self._thread(call)
        more = {"path": first.path, "line": first.line, "replies_to": first.id}
        by = self.world.login
        text = call.body["body"]
        return self.note(self.talk.comment(first.number, by, text, **more))

    def resolve(self, call: Request) -> Any:
        """Resolve a thread."""
        first = self._thread(call)
        if first.path is None:
            raise Refused(403, "403 Forbidden")
        for item in self.talk.comments:
            if first.id in (item.id, item.replies_to):
                item.resolved = bool(call.body["resolved"])
        return {"id": call.parts[2]}

    def trace(self, call: Request) -> Any:
        """Return the log of a job."""
        if int(call.parts[1]) not in self.talk.logs:
            raise Refused(404, "404 Not found")
        return web.Response(text=self.talk.logs[int(call.parts[1])])

    def issues(self, call: Request) -> Any:
        """Return the open issues with a label, or all that changed since a time."""
        if (after := call.query.get("updated_after")) is not None:
            return self._changed(datetime.fromisoformat(after))
        label = call.query.get("labels")
        listed = [
            item | {"labels": [given["name"] for given in item["labels"]]}
            for item in self.talk.issues
        ]
        return Page([item for item in listed if label in item["labels"]])

    def hooks(self, call: Request) -> Any:
        """Return the webhooks."""
        status = "disabled" if self.talk.hooks_fail else "executable"
        return Page([{"url": url, "alert_status": status} for url in self.talk.hooks])

    def delete(self, call: Request) -> Any:
        """Delete a branch."""
        if not self.world.delete(call.parts[1].replace("%2F", "/")):
            raise Refused(404, "404 Branch Not Found")
        return web.Response(status=204)

    def _thread(self, call: Request) -> Comment:
        number = self._number(call)
        id = int(call.parts[2], 16)
        for item in self.talk.comments:
            if (item.id, item.number, item.replies_to) == (id, number, None):
                return item
        raise Refused(404, "404 Discussion Not Found")

    def _number(self, call: Request) -> int:
        number = int(call.parts[1])
        if call.parts[0] != self.world.project.replace("/", "%2F") or (
            self.world.pull(number) is None
        ):
            raise Refused(404, "404 Not found")
        return number
