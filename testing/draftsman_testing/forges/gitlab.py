"""A fake GitLab, after https://docs.gitlab.com/api/.

- merge_requests: 409 `Another open merge request already exists`; merge 401, 409, 405, 422
- lib/api/entities: labels of an issue are names; `alert_status` of a hook that fails is `disabled`
- user/project/quick_actions: lines of a description that begin with `/` are executed
- rest/authentication: `PRIVATE-TOKEN`; the path of a project is one segment, with `%2F`
- rest, "Redirects": GET of a moved project is 301 to its id, and other methods are 405
- a title that begins with `Draft:` makes a draft, which cannot be merged
"""

from __future__ import annotations

import re
import time
from typing import Any

from aiohttp import web

from draftsman_testing.forges.event_routes import GitLabEvents
from draftsman_testing.forges.server import FakeForge, Operation, Page, Refused, Request
from draftsman_testing.forges.world import ForgeWorld, Note, Pull, at_second

PROJECT = r"/projects/([^/]+)"
NOTES = r"/(issues|merge_requests)/(\d+)/notes"
STATUSES = ("pending", "running", "success", "failed", "canceled", "skipped")
STATES = {"open": "opened", "closed": "closed", "merged": "merged"}


class FakeGitLab(FakeForge):
    """GitLab with a project access token."""

    kind = "gitlab"
    api = "/api/v4"
    by_id = "/projects/"
    page_size = 20

    def routes(self) -> list[tuple[str, str, str, Operation]]:
        requests = PROJECT + "/merge_requests"
        return [
            ("GET", "/user", "user", lambda _: {"username": self.world.login}),
            ("GET", "/users", "users", self._users),
            ("GET", "/personal_access_tokens/self", "token", self._token),
            ("GET", PROJECT, "repo", self._project),
            ("GET", PROJECT + "/repository/branches/([^/]+)", "branch", self._branch),
            ("GET", requests, "find", self._find),
            ("POST", requests, "create", self._create),
            ("GET", requests + r"/(\d+)", "get", lambda call: self._shown(self._pull(call))),
            ("PUT", requests + r"/(\d+)", "update", self._update),
            ("PUT", requests + r"/(\d+)/merge", "merge", self._merge),
            ("GET", PROJECT + r"/issues/(\d+)", "issue", self._issue),
            ("GET", PROJECT + r"/issues/(\d+)/resource_label_events", "labels", self._labeled),
            ("GET", PROJECT + NOTES, "comments", self._notes),
            ("POST", PROJECT + NOTES, "comment", self._write_note),
            ("GET", PROJECT + NOTES + r"/(\d+)", "comment of", self._read_note),
            ("PUT", PROJECT + NOTES + r"/(\d+)", "edit comment", self._edit_note),
            ("DELETE", PROJECT + NOTES + r"/(\d+)", "delete comment", self._delete_note),
            ("POST", PROJECT + r"/statuses/(\w+)", "status", self._status),
            ("GET", PROJECT + r"/repository/commits/(\w+)/statuses", "checks", self._checks),
            *GitLabEvents(self).routes(),
        ]

    def path_of(self, project: str) -> str:
        return f"/projects/{project.replace('/', '%2F')}"

    def moved(self, request: web.Request, rest: str) -> web.Response:
        if request.method != "GET":
            text = "405 Non GET methods are not allowed for moved projects"
            return web.json_response({"message": text}, status=405)
        url = self.url_by_id(rest)
        text = f"This resource has been moved permanently to {url}"
        return web.Response(text=text, status=301, headers={"Location": url})

    def authorize(self, request: web.Request, operation: str) -> None:
        if request.headers.get("PRIVATE-TOKEN") != self.world.token:
            raise Refused(401, "401 Unauthorized")

    def git_token(self, user: str, password: str) -> bool:
        return (user, password) == ("oauth2", self.world.token)

    def limited(self, name: str) -> Refused:
        if name == "primary":
            reset = str(int(time.time()) + 90)
            return Refused(
                429, "Retry later", {"RateLimit-Remaining": "0", "RateLimit-Reset": reset}
            )
        return Refused(429, "Retry later", {"Retry-After": "60"})

    def _check_project(self, call: Request) -> None:
        if call.parts[0] != self.world.project.replace("/", "%2F"):
            raise Refused(404, "404 Project Not Found")

    def _users(self, call: Request) -> Any:
        name = call.query["username"]
        id = self.world.people.get(name)
        return Page([] if id is None else [{"id": id, "username": name}])

    def _token(self, call: Request) -> Any:
        return {"scopes": (self.world.scopes or "api").split(",")}

    def _project(self, call: Request) -> Any:
        self._check_project(call)
        level = 30 if self.world.may_push else 20
        permissions = {"project_access": {"access_level": level}, "group_access": None}
        names = {"id": self.world.id, "path_with_namespace": self.world.project}
        return names | {"default_branch": "main", "permissions": permissions}

    def _branch(self, call: Request) -> Any:
        self._check_project(call)
        if self.world.head(call.parts[1].replace("%2F", "/")) is None:
            raise Refused(404, "404 Branch Not Found")
        return {"name": call.parts[1]}

    def _find(self, call: Request) -> Any:
        self._check_project(call)
        branch = call.query.get("source_branch")
        state = call.query.get("state", "all")
        return Page(
            [
                self._shown(pull)
                for pull in reversed(self.world.pulls)
                if branch in (None, pull.branch) and state in ("all", STATES[pull.state])
            ]
        )

    def _create(self, call: Request) -> Any:
        self._check_project(call)
        body = call.body
        branch = body["source_branch"]
        title = body["title"]
        if (other := self.world.open_of(branch)) is not None:
            text = "Another open merge request already exists for this source branch: "
            raise Refused(409, {"message": [f"{text}!{other.number}"]})
        if self.world.head(body["target_branch"]) is None:
            raise Refused(400, {"message": {"validate_branches": ["Target branch does not exist"]}})
        if len(title) > 255 or len(body["description"]) > 1_048_576:
            raise Refused(400, {"message": {"title": ["is too long (maximum is 255 characters)"]}})
        self._execute(body["description"])
        draft = title.startswith("Draft: ")
        base = body["target_branch"]
        by = self.world.login
        return self._shown(self.world.open(branch, base, title, body["description"], draft, by))

    def _execute(self, description: str) -> None:
        code = re.sub(r"^```.*?^```", "", description, flags=re.MULTILINE | re.DOTALL)
        self.world.executed += re.findall(r"^/(\w+)", code, re.MULTILINE)

    def _update(self, call: Request) -> Any:
        pull = self._pull(call)
        body = call.body
        if "description" in body:
            pull.body = body["description"]
            self._execute(pull.body)
        if "title" in body:
            pull.title = body["title"]
            pull.draft = pull.title.startswith("Draft: ")
        added = filter(None, body.get("add_labels", "").split(","))
        pull.labels += [name for name in added if name not in pull.labels]
        names = {id: name for name, id in self.world.people.items()}
        if "reviewer_ids" in body:
            pull.reviewers = [names[id] for id in body["reviewer_ids"]]
        return self._shown(pull)

    def _merge(self, call: Request) -> Any:
        pull = self._pull(call)
        if call.body.get("sha") not in (None, self.world.head(pull.branch)):
            raise Refused(409, "SHA does not match HEAD of source branch")
        if pull.state != "open" or pull.draft or self.world.protection is not None:
            raise Refused(405, "405 Method Not Allowed")
        pull.message = call.body.get("squash_commit_message", "")
        self.world.merge(pull)
        return self._shown(pull)

    def _issue(self, call: Request) -> Any:
        self._check_project(call)
        url = f"{self.world.base}/{self.world.project}/-/issues/{call.parts[1]}"
        title, text = self.world.issue
        return {"title": title, "description": text, "web_url": url}

    def _labeled(self, call: Request) -> Any:
        self._check_project(call)
        return Page(
            [
                {"id": id, "action": "add" if by else "remove", "created_at": at_second(id)}
                | {
                    "label": {"name": label},
                    "user": {"id": self.world.account_id(by), "username": by},
                }
                for id, (label, by) in enumerate(self.world.labelers, 1)
            ]
        )

    def _place(self, call: Request) -> str:
        self._check_project(call)
        place = f"{'#' if call.parts[1] == 'issues' else '!'}{call.parts[2]}"
        if not self.world.has(place):
            raise Refused(404, "404 Not found")
        return place

    def _notes(self, call: Request) -> Any:
        notes = self.world.comments(self._place(call))
        newest_first = call.query.get("sort", "desc") == "desc"
        return Page(
            [_note(self.world, note) for note in (reversed(notes) if newest_first else notes)]
        )

    def _write_note(self, call: Request) -> Any:
        place = self._place(call)
        body = str(call.body.get("body") or "")
        if self.world.refuses(body) or len(body) > 1_000_000:
            raise Refused(400, {"message": "400 Bad request - Note can't be blank"})
        self._execute(body)
        return _note(self.world, self.world.comment(place, body))

    def _find_note(self, call: Request) -> Note:
        found = self.world.comments(self._place(call))
        note = next((item for item in found if item.id == int(call.parts[3])), None)
        if note is None:
            raise Refused(404, "404 Not found")
        return note

    def _read_note(self, call: Request) -> Any:
        return _note(self.world, self._find_note(call))

    def _delete_note(self, call: Request) -> Any:
        self.world.notes.remove(self._find_note(call))
        return web.Response(status=204)

    def _edit_note(self, call: Request) -> Any:
        note = self._find_note(call)
        note.body = call.body["body"]
        self._execute(note.body)
        return _note(self.world, note)

    def _status(self, call: Request) -> Any:
        self._check_project(call)
        if not self.world.has_commit(call.parts[1]):
            raise Refused(404, "404 Commit Not Found")
        if call.body["state"] not in STATUSES:
            raise Refused(400, {"error": "state does not have a valid value"})
        if len(call.body["description"]) > 255:
            raise Refused(400, {"message": {"description": ["is too long"]}})
        self.world.statuses.append(
            {
                "name": call.body["name"],
                "state": call.body["state"],
                "description": call.body["description"],
                "commit": call.parts[1],
            }
        )
        return {"id": len(self.world.statuses)}

    def _checks(self, call: Request) -> Any:
        words = {"passed": "success", "pending": "running"}
        commit = call.parts[1]
        jobs = [it for it in enumerate(self.world.checks, 1) if it[1]["commit"] in ("*", commit)]
        found = [(id, item["name"], words.get(item["state"], item["state"])) for id, item in jobs]
        found += [(0, item["name"], item["state"]) for item in self.world.latest(commit)]
        return Page(
            [
                {"id": id, "name": name, "status": word, "allow_failure": False}
                for id, name, word in found
            ]
        )

    def _pull(self, call: Request) -> Pull:
        self._check_project(call)
        if (pull := self.world.pull(int(call.parts[1]))) is None:
            raise Refused(404, "404 Not found")
        return pull

    def _shown(self, pull: Pull) -> dict[str, Any]:
        status = "mergeable"
        if pull.draft:
            status = "draft_status"
        elif self.world.protection is not None:
            status = "not_approved"
        return {
            "iid": pull.number,
            "web_url": f"{self.world.base}/{self.world.project}/-/merge_requests/{pull.number}",
            "state": STATES[pull.state],
            "closed_at": pull.closed_at if pull.state == "closed" else None,
            "sha": pull.merged_head or self.world.head(pull.branch) or "0" * 40,
            "source_project_id": 1,
            "target_project_id": 1,
            "source_branch": pull.branch,
            "target_branch": pull.base,
            "draft": pull.draft,
            "title": pull.title,
            "description": pull.body,
            "detailed_merge_status": status,
            "has_conflicts": pull.number in self.world.talk.conflicts,
        }


def _note(world: ForgeWorld, note: Note) -> dict[str, Any]:
    at = note.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    author = {"id": world.account_id(note.author), "username": note.author}
    return {"id": note.id, "body": note.body, "author": author, "created_at": at, "system": False}
