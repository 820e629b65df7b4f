"""Comments of the fake GitHub and Gitea, whose paths and JSON are the same."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from aiohttp import web

from draftsman_testing.forges.conversation import Comment
from draftsman_testing.forges.event_routes import GitHubEvents, Routes
from draftsman_testing.forges.server import Page, Refused, Request
from draftsman_testing.forges.world import Note, at_second

ISSUE = r"/repos/([^/]+)/([^/]+)/issues"
MAX_BODY = 65_536


class IssueComments:
    """The operations on comments, after /rest/issues/comments of GitHub."""

    def __init__(self, pulls: GitHubEvents) -> None:
        """Take the operations on the comments of pull requests."""
        self._pulls = pulls
        self._world = pulls.world

    def routes(self) -> Routes:
        """Return method, pattern, name and function of each operation."""
        one = ISSUE + r"/comments/(\d+)"
        return [
            ("GET", ISSUE + r"/(\d+)", "issue", self._issue),
            ("GET", ISSUE + r"/(\d+)/events", "labels", self._labeled),
            ("GET", ISSUE + r"/(\d+)/timeline", "labels", self._labeled),
            ("GET", ISSUE + "/comments", "all comments", self._all),
            ("GET", ISSUE + r"/(\d+)/comments", "comments", self._listed),
            ("POST", ISSUE + r"/(\d+)/comments", "comment", self._written),
            ("GET", one, "comment of", self._one),
            ("PATCH", one, "edit comment", self._edited),
            ("DELETE", one, "delete comment", self._deleted),
        ]

    def _shown(self, note: Note) -> dict[str, Any]:
        at = note.at.strftime("%Y-%m-%dT%H:%M:%SZ")
        number = note.place[1:]
        base = f"{self._world.base}/{self._world.project}/issues/{number}"
        return {
            "id": note.id,
            "body": note.body,
            "user": self._pulls.show.user(note.author),
            "created_at": at,
            "updated_at": at,
            "issue_url": base,
            "html_url": f"{base}#issuecomment-{note.id}",
        }

    def _place(self, call: Request, *, is_issue: bool = False) -> str:
        name = f"#{call.parts[2]}"
        path = "/".join(call.parts[:2]).casefold()
        if path != self._world.project:
            raise Refused(404, "Not Found")
        if not self._world.has(name):  # Gitea has 404 for the issue itself alone
            raise Refused(500 if self._pulls.is_gitea and not is_issue else 404, "Not Found")
        return name

    def _issue(self, call: Request) -> Any:
        self._place(call, is_issue=True)
        url = f"{self._world.base}/{self._world.project}/issues/{call.parts[2]}"
        title, text = self._world.issue
        return {"title": title, "body": text, "html_url": url}

    def _labeled(self, call: Request) -> Any:
        """Return who gave labels, in the JSON of events of GitHub or of the timeline of Gitea."""
        self._place(call)
        events: list[dict[str, Any]] = []
        for id, (label, by) in enumerate(self._world.labelers, 1):
            event = {"id": id, "label": {"name": label}, "created_at": at_second(id)}
            user = {"id": self._world.account_id(by), "login": by}
            if self._pulls.is_gitea:
                event |= {"type": "label", "user": user, "body": "1" if by else ""}
            else:
                event |= {"event": "labeled" if by else "unlabeled", "actor": user}
            events.append(event)
        return Page(events)

    def _all(self, call: Request) -> Any:
        since = datetime.fromisoformat(call.query["since"])
        notes = [self._shown(note) for note in self._world.notes if note.at >= since]
        base = f"{self._world.base}/{self._world.project}/issues"
        return Page(
            notes
            + [
                self._pulls.show.comment(item)
                | {"issue_url": "" if self._pulls.is_gitea else f"{base}/{item.number}"}
                for item in self._pulls.talk.comments
                if not item.path
            ]
        )

    def _listed(self, call: Request) -> Any:
        if self._world.pull(int(call.parts[2])) is not None:
            return self._pulls.comments(call)
        since = datetime.fromisoformat(call.query["since"]) if "since" in call.query else None
        notes = self._world.comments(self._place(call))
        recent = [self._shown(note) for note in notes if since is None or note.at >= since]
        return Page(recent, whole=self._pulls.is_gitea)

    def _written(self, call: Request) -> Any:
        if self._world.pull(int(call.parts[2])) is not None:
            self._checked(call)
            return self._pulls.write(call)
        name = self._place(call)
        return self._shown(self._world.comment(name, self._checked(call)))

    def _one(self, call: Request) -> Any:
        item = self._of_pull(call)
        return self._shown(self._found(call)) if item is None else self._pulls.show.comment(item)

    def _of_pull(self, call: Request) -> Comment | None:
        """Return the comment on a pull request, which is not on lines."""
        id = int(call.parts[2])
        return next((c for c in self._pulls.talk.comments if c.id == id and not c.path), None)

    def _found(self, call: Request) -> Note:
        id = int(call.parts[2])
        note = next((item for item in self._world.notes if item.id == id), None)
        if note is None:
            raise Refused(404, "Not Found")
        return note

    def _edited(self, call: Request) -> Any:
        if (item := self._of_pull(call)) is not None:
            item.body = self._checked(call)
            return self._pulls.show.comment(item)
        note = self._found(call)
        note.body = self._checked(call)
        return self._shown(note)

    def _deleted(self, call: Request) -> Any:
        self._world.notes.remove(self._found(call))
        return web.Response(status=204)

    def _checked(self, call: Request) -> str:
        body = str(call.body.get("body") or "")
        if self._world.refuses(body) or len(body) > MAX_BODY:
            raise Refused(422, "Body is too long (maximum is 65536 characters)")
        return body
