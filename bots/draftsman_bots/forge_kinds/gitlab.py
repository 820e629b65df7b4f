"""GitLab: https://docs.gitlab.com/api/rest/, version 4."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from draftsman.errors import Failure
from draftsman.forges.api.api_forge import ApiForge
from draftsman.forges.api.api_reader import LOG_END, ApiReader
from draftsman.forges.api.rest_api import PAGE
from draftsman.forges.checks import STATUS_NAME, CheckState, CommitCheck, check_of, relevant_part
from draftsman.forges.forge_event import (
    EventKind,
    ForgeEvent,
    Labeling,
    PullEvents,
    account_id,
    fields,
    is_edited,
    moment,
    plain,
)
from draftsman.forges.project import Project
from draftsman.forges.pull_request import (
    Account,
    GitLogin,
    PullRequest,
    PullRequestText,
    PullState,
    TextLimits,
)
from draftsman_bots.forge_kinds import gitlab_events
from draftsman_bots.forge_kinds.github import written
from draftsman_bots.forge_kinds.gitlab_discussion import GitLabDiscussion

# Events of a project on GitLab: https://docs.gitlab.com/api/rest/, version 4.


class GitLabReader(ApiReader):
    """The events of a project on GitLab."""

    async def pull(self, number: int) -> PullEvents:
        path = f"{self._path}/merge_requests/{number}"
        data = await self._reads.get(self._api, path)
        if (ended := gitlab_events.ended(self._project, data)) is not None:
            return PullEvents([ended])
        events = await self.written(number)
        if data.get("has_conflicts"):
            events.append(gitlab_events.conflict(self._project, data))
        head = str(data["sha"])
        return PullEvents(events + await self._failed(number, head), head)

    async def written(self, number: int) -> list[ForgeEvent]:
        path = f"{self._path}/merge_requests/{number}/discussions"
        return [
            gitlab_events.note(self._project, number, note, str(item["id"]), note.get("author"))
            for item in await self._list(path)
            for note in item["notes"]
            if not (note.get("system") or is_edited(note))
        ]

    async def labeled_issues(self, label: str) -> list[ForgeEvent]:
        issues = await self._list(f"{self._path}/issues", labels=label, state="opened")
        return await self._labels.events(
            gitlab_events.labeled_issue(self._project, item, label, {}) for item in issues
        )

    async def labelings(self, number: int, label: str) -> list[Labeling]:
        path = f"{self._path}/issues/{number}/resource_label_events"
        return [
            Labeling(
                str(item["id"]),
                str(fields(item.get("user")).get("username") or ""),
                moment(item.get("created_at")),
                account_id(fields(item.get("user"))),
            )
            for item in await self._list(path)
            if item.get("action") == "add"
            and str(fields(item.get("label")).get("name")).casefold() == label.casefold()
        ]

    async def issue_comments(self, since: datetime, numbers: Sequence[int]) -> list[ForgeEvent]:
        """Read the notes of issues that changed: GitLab has no list of all notes of a project."""
        path = f"{self._path}/issues"
        after = written(since)
        changed = await self._api.pages(path, updated_after=after, state="all", per_page=PAGE)
        followed = set(numbers)
        since = since.replace(microsecond=0)
        events = []
        for number in sorted(followed | {int(item["iid"]) for item in changed}):
            for note in await self._list(f"{path}/{number}/notes", sort="asc"):
                is_new = number in followed or (moment(note.get("created_at")) or since) >= since
                if is_new and not (note.get("system") or is_edited(note)):
                    by = note.get("author")
                    events.append(gitlab_events.issue_note(self._project, number, note, by))
        return events

    async def _failed(self, number: int, head: str) -> list[ForgeEvent]:
        """Return the jobs of a commit that failed, with the relevant part of their logs."""
        path = f"{self._path}/repository/commits/{head}/statuses"
        events = []
        for status in await self._list(path):
            failed = check_of(status["name"], status["status"]).state is CheckState.FAILED
            if not failed or status.get("allow_failure") or status["name"] == STATUS_NAME:
                continue
            key = f"check:{status['id']}:{status['status']}"
            if key not in self._logs:
                self._logs[key] = await self._job(number, head, key, status)
            events.append(self._logs[key])
        return events

    async def _job(self, number: int, head: str, key: str, status: Mapping[str, Any]) -> ForgeEvent:
        # the id of a status of GitLab's own CI is that of its job
        log = await self._api.text(f"{self._path}/jobs/{status['id']}/trace", LOG_END)
        texts = [str(fields(status).get("description") or ""), relevant_part(log)]
        return ForgeEvent(
            EventKind.CHECK_FAILED,
            self._project,
            number,
            key,
            title=str(status["name"]),
            text=plain("\n".join(text for text in texts if text)),
            commit=head,
            url=str(status.get("target_url") or "") or None,
        )


DRAFT: Final = "Draft: "
"""Prefix of the title of a draft."""
_DRAFT: Final = re.compile(r"\A(?:\s*(?:draft:|\[draft\]|\(draft\)))+\s*", re.IGNORECASE)
"""All prefixes of drafts: https://docs.gitlab.com/user/project/merge_requests/drafts."""
DEVELOPER: Final = 30
"""Access level that may push and open merge requests."""
MERGE_STATES: Final = {
    **dict.fromkeys(("", "mergeable"), CheckState.PASSED),
    **dict.fromkeys(("checking", "unchecked", "preparing", "ci_still_running"), CheckState.PENDING),
    "approvals_syncing": CheckState.PENDING,
}
"""Values of `detailed_merge_status`; others are refused."""
STATES: Final = {"opened": PullState.OPEN, "locked": PullState.OPEN, "merged": PullState.MERGED}


class GitLab(ApiForge):
    """A project on GitLab, with a personal, group or project access token."""

    api_path = "/api/v4"
    failed = "failed"
    status_key = "name"
    limits = TextLimits(title=255, body=1_000_000, status=255)

    location_key = "path_with_namespace"

    @classmethod
    def path_of(cls, project: Project) -> str:
        return f"/projects/{quote(project.path, safe='')}"

    def events(self) -> GitLabReader:
        return GitLabReader(self._api, self._path, self.project.path)

    async def account(self) -> Account:
        user = await self._api.get("/user")
        missing: tuple[str, ...] = ()
        token = await self._api.call("GET", "/personal_access_tokens/self", accepts=(401, 403, 404))
        if token.status == 200 and "api" not in (token.data.get("scopes") or ()):
            missing += ("scope api",)
        permissions = (await self._api.get(self._path)).get("permissions") or {}
        levels = [
            (permissions.get(kind) or {}).get("access_level") or 0
            for kind in ("project_access", "group_access")
        ]
        if max(levels) < DEVELOPER:
            missing += ("role Developer",)
        return Account(str(user["username"]), missing)

    async def git_login(self) -> GitLogin:
        return GitLogin("oauth2", await self._token())

    async def has_branch(self, name: str) -> bool:
        path = f"{self._path}/repository/branches/{quote(name, safe='')}"
        return await self._api.exists(path)

    async def find(self, branch: str) -> list[PullRequest]:
        requests = await self._api.pages(
            f"{self._path}/merge_requests", source_branch=branch, state="all", per_page=PAGE
        )
        return [
            _pull(item)
            for item in requests
            if item["source_project_id"] == item["target_project_id"]
        ]

    async def get(self, number: int) -> PullRequest:
        return _pull(await self._api.get(f"{self._path}/merge_requests/{number}"))

    async def create(self, text: PullRequestText) -> PullRequest:
        title = f"{DRAFT if text.draft else ''}{text.title}"[: self.limits.title]
        body = {
            "source_branch": text.branch,
            "target_branch": text.base,
            "title": title,
            "description": text.body,
        }
        return _pull((await self._api.call("POST", f"{self._path}/merge_requests", body)).data)

    async def update(self, number: int, body: str) -> None:
        await self._edit(number, {"description": body})

    async def set_draft(self, pull: PullRequest, draft: bool) -> None:
        title = f"{DRAFT if draft else ''}{_DRAFT.sub('', pull.title)}"
        await self._edit(pull.number, {"title": title[: self.limits.title]})

    async def add_labels(self, number: int, labels: Sequence[str]) -> None:
        await self._edit(number, {"add_labels": ",".join(labels)})

    async def request_reviews(self, number: int, reviewers: Sequence[str]) -> None:
        ids = []
        for name in reviewers:
            users = await self._api.get("/users", username=name)
            if not users:
                text = f"{self.name}: no user {name}"
                raise Failure(text, origin="forge", http_status=404)
            ids.append(users[0]["id"])
        await self._edit(number, {"reviewer_ids": ids})

    async def checks(self, commit: str) -> list[CommitCheck]:
        """Return the latest status of each job; a job that may fail counts as passed."""
        path = f"{self._path}/repository/commits/{commit}/statuses"
        statuses = await self._api.pages(path, per_page=PAGE)
        return [
            check_of(item["name"], "skipped" if item.get("allow_failure") else item["status"])
            for item in statuses
        ]

    async def answer(self, number: int, text: str, thread: str | None) -> None:
        path = f"{self._path}/merge_requests/{number}"
        path += "/notes" if thread is None else f"/discussions/{quote(thread)}/notes"
        await self._api.call("POST", path, {"body": text})

    async def resolve(self, number: int, thread: str) -> None:
        path = f"{self._path}/merge_requests/{number}/discussions/{quote(thread)}"
        await self._api.call("PUT", path, {"resolved": True})

    async def delete_branch(self, name: str) -> None:
        path = f"{self._path}/repository/branches/{quote(name, safe='')}"
        await self._api.delete(path, accepts=(404,))

    async def merge(self, number: int, commit: str, method: str, message: str = "") -> None:
        """Merge; `rebase` is a setting of the project here."""
        body: dict[str, Any] = {"sha": commit, "squash": method == "squash"}
        if method == "squash" and message:
            body["squash_commit_message"] = message
        await self._api.call("PUT", f"{self._path}/merge_requests/{number}/merge", body)

    def discussion(self, number: int, *, is_pull: bool) -> GitLabDiscussion:
        limit = self.limits.body
        return GitLabDiscussion(self._api, self._path, number, limit, is_pull=is_pull)

    async def _edit(self, number: int, fields: Mapping[str, Any]) -> None:
        await self._api.call("PUT", f"{self._path}/merge_requests/{number}", fields)

    async def _authorization(self) -> Mapping[str, str]:
        return {"private-token": await self._token()}


def _pull(data: Mapping[str, Any]) -> PullRequest:
    return PullRequest(
        number=int(data["iid"]),
        url=str(data["web_url"]),
        state=STATES.get(data["state"], PullState.CLOSED),
        head=str(data["sha"]),
        base=str(data["target_branch"]),
        draft=bool(data.get("draft")),
        title=str(data["title"]),
        body=str(data.get("description") or ""),
        mergeable=MERGE_STATES.get(data.get("detailed_merge_status") or "", CheckState.FAILED),
        merge_state=str(data.get("detailed_merge_status") or ""),
    )
