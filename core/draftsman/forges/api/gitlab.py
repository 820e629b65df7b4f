"""GitLab: https://docs.gitlab.com/api/rest/, version 4."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from draftsman.errors import Failure
from draftsman.forges.api.api_forge import ApiForge
from draftsman.forges.api.comments import GitLabDiscussion
from draftsman.forges.api.gitlab_reader import GitLabReader
from draftsman.forges.api.rest_api import PAGE
from draftsman.forges.checks import CheckState, CommitCheck, check_of
from draftsman.forges.project import Project
from draftsman.forges.pull_request import (
    Account,
    GitLogin,
    PullRequest,
    PullRequestText,
    PullState,
    TextLimits,
)
from draftsman.settings import ForgeSettings, HttpSettings

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

    kind = "gitlab"
    failed, status_key = "failed", "name"
    limits = TextLimits(title=255, body=1_000_000, status=255)

    def __init__(
        self, name: str, settings: ForgeSettings, http: HttpSettings, project: Project
    ) -> None:
        super().__init__(name, settings, http, project)
        self._path = f"/projects/{quote(project.path, safe='')}"

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
        found = await self._api.pages(
            f"{self._path}/merge_requests", source_branch=branch, state="all", per_page=PAGE
        )
        own = [item for item in found if item["source_project_id"] == item["target_project_id"]]
        return [_pull(item) for item in own]

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
            found = await self._api.get("/users", username=name)
            if not found:
                text = f"{self.name}: no user {name}"
                raise Failure(text, origin="forge", http_status=404)
            ids.append(found[0]["id"])
        await self._edit(number, {"reviewer_ids": ids})

    async def checks(self, commit: str) -> list[CommitCheck]:
        """Return the latest status of each job; a job that may fail counts as passed."""
        path = f"{self._path}/repository/commits/{commit}/statuses"
        found = [
            (item, check_of(item["name"], item["status"]))
            for item in await self._api.pages(path, per_page=PAGE)
        ]
        return [
            check_of(check.name, "skipped") if item.get("allow_failure") else check
            for item, check in found
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

    async def merge(self, number: int, commit: str, method: str) -> None:
        """Merge; `rebase` is a setting of the project here."""
        body = {"sha": commit, "squash": method == "squash"}
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
        int(data["iid"]),
        str(data["web_url"]),
        STATES.get(data["state"], PullState.CLOSED),
        str(data["sha"]),
        str(data["target_branch"]),
        bool(data.get("draft")),
        str(data["title"]),
        str(data.get("description") or ""),
        MERGE_STATES.get(data.get("detailed_merge_status") or "", CheckState.FAILED),
        str(data.get("detailed_merge_status") or ""),
    )
